import { z } from "zod";
import { maximumScheme } from "../../methods/method-lists.ts";
import { forTimes, type PaymentTimes, timeFields } from "../../methods/payment-times.ts";
import { jsonAmount, termMembers } from "../../payer/payment-order.ts";
import { usual } from "../../payer/terms.ts";
import { type TestPayerName, testPayers } from "../../payer/test-payers.ts";
import { strictMembers } from "../../protocol/primitives.ts";
import { KitError } from "../../util/errors.ts";
import type { PaymentSpec } from "./pay.ts";

const time = z
  .string()
  .regex(/^(\d{1,15}|now([+-]\d{1,13})?)$/, 'is neither unix seconds nor as "now-60" or "now+600"');

const { resource: _, ...terms } = termMembers;

/** The body of `POST /harness/pay`. The payer is a test payer by name. */
export const payRequest = strictMembers({
  ...terms,
  network: z.string(),
  /** By default the scheme with a maximum if `max` is given, otherwise “exact”. */
  scheme: terms.scheme.unwrap().optional(),
  payer: z.enum(Object.keys(testPayers) as [TestPayerName, ...TestPayerName[]]).default(usual.payer),
  /** For Permit2: attaches an approval, as an EIP-2612 permit (true) or as a transaction of the payer. */
  approval: z.union([z.boolean(), z.literal("transaction")]).optional(),
  /** Unix seconds, or relative to the chain's time, such as `now-60` or `now+600`. An end overrides `validForSeconds`. */
  ...forTimes(() => time.optional()),
});

/**
 * Returns the requested payment, and the given times in unix seconds.
 *
 * @param readNow reads the chain's time; only called for relative times
 * @throws {KitError} for a time before 1970
 */
export async function readPayment(
  asked: z.infer<typeof payRequest>,
  readNow: () => Promise<bigint>,
): Promise<{ payment: PaymentSpec; times: Partial<PaymentTimes> }> {
  async function read(name: string, text: string): Promise<bigint> {
    const seconds = text.startsWith("now")
      ? (await readNow()) + BigInt(text.slice(3).replace("+", ""))
      : BigInt(text);
    if (seconds < 0n) throw new KitError(`${name}: ${text} is before 1970, where unix time begins`);
    return seconds;
  }
  const times: Partial<PaymentTimes> = {};
  for (const { name } of timeFields) {
    const text = asked[name];
    if (text !== undefined) times[name] = await read(name, text);
  }
  const { validAfter: _, validBefore: __, units, amount, max, ...terms } = asked;
  const { scheme = max === undefined ? undefined : maximumScheme } = terms;
  const amounts = { amount: jsonAmount(amount, units), max: jsonAmount(max, units) };
  return { payment: { ...terms, scheme, ...amounts }, times };
}
