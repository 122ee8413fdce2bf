import { adviceOnAnswer, errorsSection } from "../protocol/catalogue-texts.ts";
import { decodeHeader } from "../protocol/payment-headers.ts";
import { isObject, membersOf } from "../util/json.ts";

/** The result of a vitest or Jest matcher. */
export type MatcherResult = { pass: boolean; message: () => string };

/**
 * The matcher `expect(answer).toBeSettled()`: passes if the payment was settled. If it fails, the message says why and how to
 * fix it. `x402-facilitator-kit/vitest` registers it with vitest.
 *
 * @param answer the result of `harness.pay` or `harness.settle`, the body of a settle response, or a shop's response. A shop
 *   must have delivered: a 2xx with a receipt.
 *
 * @example
 * expect.extend({ toBeSettled }); // in Jest
 * expect(await harness.pay({ network: "base" })).toBeSettled();
 */
export function toBeSettled(answer: unknown): MatcherResult {
  const read = readAnswer(answer);
  const { body, status } = read;
  const { success, transaction } = body;
  const pass = success === true && (status === undefined || (status >= 200 && status < 300));
  if (pass) return { pass, message: () => `Expected no settled payment, but ${transaction} settled it` };
  return { pass, message: () => ["Expected a settled payment", ...explain(read)].join("\n") };
}

type Read = {
  /** The body of the settle response, or the shop's receipt. */
  body: Record<string, unknown>;
  status: number | undefined;
  isShop: boolean;
  /** The findings on a `harness.buyer` response, otherwise empty. */
  findings: readonly unknown[];
};

function readAnswer(answer: unknown): Read {
  if (answer instanceof Response) {
    const { headers, status } = answer;
    const receipt = headers.get("PAYMENT-RESPONSE") ?? headers.get("X-PAYMENT-RESPONSE") ?? "";
    const findings: unknown = Reflect.get(answer, "findings");
    const found = Array.isArray(findings) ? findings : [];
    return { body: membersOf(decodeHeader(receipt)), status, isShop: true, findings: found };
  }
  const members = membersOf(answer);
  if (isObject(members.settle)) return readAnswer(members.settle);
  const status = typeof members.status === "number" ? members.status : undefined;
  const isAnswer = status !== undefined && isObject(members.body);
  return { body: isAnswer ? membersOf(members.body) : members, status, isShop: false, findings: [] };
}

function explain({ body, status, isShop, findings }: Read): string[] {
  const text = (name: string): string => {
    const value = body[name];
    return typeof value === "string" ? value : "";
  };
  const line = (name: string, value: string) => (value === "" ? [] : [`  ${`${name}:`.padEnd(9)} ${value}`]);
  const reason = text("errorReason") || text("invalidReason") || (text("type").split(":").at(-1) ?? "");
  const message = text("errorMessage") || text("invalidMessage") || text("detail");
  const situation = text("situation");
  const { fact, why, fix } = adviceOnAnswer(reason, { situation, message: message || reason });
  return [
    ...line("status", status === undefined ? "" : `${status}`),
    ...line("reason", reason || (isShop ? noReceipt(body) : noSettle(body))),
    ...line("message", fact === reason ? "" : fact),
    ...line("why", why),
    ...line("fix", fix),
    ...line("next", text("nextAction")),
    ...line("payment", text("paymentState")),
    ...line("more", reason === "" ? "" : errorsSection(reason)),
    ...findings.flatMap((finding) => {
      const { title, at, fix } = membersOf(finding);
      return [...line("finding", `${title} (${at})`), ...line("fix", `${fix}`)];
    }),
  ];
}

function noReceipt({ success }: Read["body"]): string {
  return success === true
    ? "the receipt says that the payment was settled, but the shop has not delivered"
    : "the shop's response has no receipt: neither PAYMENT-RESPONSE nor X-PAYMENT-RESPONSE";
}

function noSettle({ isValid, success }: Read["body"]): string {
  if (isValid !== undefined) return "this is the answer of a verify, which moves nothing";
  return success === undefined ? "this is no answer of a settle: it has no member success" : "none is given";
}
