import { channelErrorIn } from "../../methods/batch-settlement/on-chain/channel-errors.ts";
import { type Finding, finding } from "../../protocol/mistakes.ts";

/* Errors thrown by clients and browsers before a payment is sent, as people paste them. */

type ClientError = {
  pattern: RegExp;
  /** @param found the matches of the pattern's groups */
  advise: (...found: string[]) => { title: string; why: string; fix: string };
};

const clientErrors: readonly ClientError[] = [
  {
    pattern: /Payment amount exceeds maximum allowed/i,
    advise: () => ({
      title: "The client stopped at its own limit",
      why: "The price is above the limit of the client (0.1 USDC by default in x402-fetch): it signed nothing, and nobody else refused it.",
      fix: "Give the client a higher limit, maxValue, in the token's smallest unit; or lower the price.",
    }),
  },
  {
    pattern: /(?:ERR_SSL_)?wrong.version.number|packet.length.too.long/i,
    advise: () => ({
      title: "https was asked of an http port",
      why: "The client began with TLS, and what listens there speaks plain http.",
      fix: "Write the URL with http:// in place of https://.",
    }),
  },
  {
    pattern: /ECONNREFUSED \[?::1\]?:(\d+)/,
    advise: (port) => ({
      title: `Nothing listens at the IPv6 address ::1, port ${port}`,
      why: "Node gives localhost as ::1 first; `up`, and many shops, listen at 127.0.0.1 alone.",
      fix: `Write http://127.0.0.1:${port} in place of localhost or [::1].`,
    }),
  },
  {
    pattern: /header field ([\w-]+) is not allowed by Access-Control-Allow-Headers/i,
    advise: (header) => ({
      title: `The page may not send the header ${header} (CORS)`,
      why: "The browser asked with OPTIONS first, and the answer does not name this header.",
      fix: `Let the server name ${header} in Access-Control-Allow-Headers.`,
    }),
  },
  {
    pattern: /from origin '([^']+)' has been blocked by CORS policy/i,
    advise: (origin) => ({
      title: `The page's origin, ${origin}, is not let in (CORS)`,
      why: "Browsers show an answer to a page of another origin only if the answer allows that.",
      fix: `Let the shop answer with Access-Control-Allow-Origin: ${origin}. If it is this facilitator that the page asks: --cors-origins ${origin}.`,
    }),
  },
];

/** Explains a client's error, or a revert of the channel escrow; undefined for any other text. */
export function explainClientError(text: string): Finding | undefined {
  for (const { pattern, advise } of clientErrors) {
    const [got, ...found] = pattern.exec(text) ?? [];
    if (got !== undefined) return { ...finding("client-error", "", { got }), ...advise(...found) };
  }
  const reverted = channelErrorIn(text);
  if (reverted === undefined) return undefined;
  const { name, advice } = reverted;
  const title = `The escrow of scheme “batch-settlement” reverted: ${name}`;
  const why = "The transaction moved nothing. One bad row reverts a whole claim.";
  return { ...finding("client-error", "", { got: name, why }), title, ...(advice !== "" && { fix: advice }) };
}
