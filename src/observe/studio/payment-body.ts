import type { Hex } from "../../protocol/hex.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { parseJson } from "../../util/json.ts";
import { maskSecrets } from "../../util/text.ts";
import type { ExplainContext } from "../explain/explain-input.ts";
import { requestBodyOf } from "../explain/explain-refusal.ts";
import { isRecord } from "../explain/read-input.ts";

/** A payment, and the body that it was read of, where that is kept. */
type Sent = { request: PaymentRequest; body: string | undefined };

type Context = Pick<ExplainContext, "contracts" | "tokens">;

/** The body of the newest request of a payment: as it came, or else made of what was read of it. */
export function bodyOf({ request, body }: Sent, context: Context): Record<string, unknown> {
  const came = body === undefined ? undefined : parseJson(body);
  return isRecord(came) ? came : requestBodyOf(request, context);
}

/** The same for people to see: with another text in place of the signature, and with what else may be a secret masked. */
export function shownBody(
  sent: Sent,
  context: Context,
  cut: (signature: Hex) => string,
): Record<string, unknown> {
  const { signature } = sent.request.payment;
  const isSignature = (text: string) => text.toLowerCase() === signature.toLowerCase();
  return mask(bodyOf(sent, context), (text) => (isSignature(text) ? cut(signature) : undefined));
}

function mask(
  members: Record<string, unknown>,
  cut: (text: string) => string | undefined,
): Record<string, unknown> {
  const masked = (value: unknown, name: string): unknown => {
    if (typeof value === "string") return cut(value) ?? maskMember(name, value);
    if (Array.isArray(value)) return value.map((one) => masked(one, name));
    return isRecord(value) ? mask(value, cut) : value;
  };
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [name, masked(value, name)]));
}

/** Whether a text may be a secret depends on the name of its member, too. */
function maskMember(name: string, text: string): string {
  const before = `"${name}":"`;
  // Masking reads JSON, in which a quotation mark would end the text.
  const masked = maskSecrets(`${before}${text.replaceAll('"', "'")}"`).slice(before.length, -1);
  return masked.includes("•") ? masked : text;
}
