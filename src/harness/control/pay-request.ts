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

/** The body of `POST /harness/pay`, with a test payer by its name. */
export const payRequest = strictMembers({
  ...terms,
  network: z.string(),
  /** If left out, the one that has a maximum where there is one, or else “exact”. */
  scheme: terms.scheme.unwrap().optional(),
  payer: z.enum(Object.keys(testPayers) as [TestPayerName, ...TestPayerName[]]).default(usual.payer),
  /** By Permit2: whether an approval is sent along (EIP-2612), or as a transaction of the payer's. */
  approval: z.union([z.boolean(), z.literal("transaction")]).optional(),
  /** Unix seconds, or `now-60` and `now+600`: from the chain's time. When it ends goes before `validForSeconds`. */
  ...forTimes(() => time.optional()),
});

/**
 * The payment that is asked for, and its times in unix seconds, where they are named.
 *
 * @param readNow the chain's time, which is only read for what is said from now
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
