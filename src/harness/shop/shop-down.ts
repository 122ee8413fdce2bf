type Down = {
  target: string;
  problem: string;
  /** True if the request may have reached the shop. */
  isSent: boolean;
};

/** The answer if the shop does not respond: a page for browsers, JSON for programs. */
export function describeShopDown({ target, problem, isSent }: Down, accept = "") {
  const error = `The shop at ${target} does not answer (${problem})`;
  const hints = isSent
    ? [
        "The connection broke off before the answer: the shop's own log says why.",
        "What became of a payment: x402-kit why",
      ]
    : [
        "Start the shop and send the request again; it did not reach the shop.",
        "If the shop listens elsewhere: x402-kit up --shop URL",
      ];
  if (!accept.includes("text/html")) {
    return {
      status: 502,
      type: "application/json",
      body: JSON.stringify({ error, code: "unreachable", hints }),
    };
  }
  const escapeHtml = (text: string) => text.replace(/[&<>"]/g, (one) => `&#${one.charCodeAt(0)};`);
  const lines = hints.map((hint) => `<p>${escapeHtml(hint)}</p>`).join("\n");
  const body = `<!doctype html>\n<title>The shop does not answer</title>\n<h1>${escapeHtml(error)}</h1>\n${lines}\n`;
  return { status: 502, type: "text/html; charset=utf-8", body };
}
