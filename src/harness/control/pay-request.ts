import { z } from "zod";
import { forTimes, type PaymentTimes, timeFields } from "../../methods/exact-eip3009/payment-times.ts";
import { address, uint256String } from "../../protocol/primitives.ts";
import { type TestPayerName, testPayers } from "../../published/test-payers.ts";
import { KitError } from "../../util/errors.ts";
import type { PaymentSpec } from "./pay.ts";

const time = z
  .string()
  .regex(/^(\d{1,15}|now([+-]\d{1,13})?)$/, 'is neither unix seconds nor as "now-60" or "now+600"');

/** What `POST /harness/pay` takes, with a test payer by its name. */
export const payRequest = z.object({
  network: z.string(),
  payer: z.enum(Object.keys(testPayers) as [TestPayerName, ...TestPayerName[]]),
  amount: uint256String,
  payTo: address.optional(),
  x402Version: z.union([z.literal(1), z.literal(2)]).default(1),
  /** From the chain's time; below zero it has expired. */
  validForSeconds: z.int().default(600),
  /** Unix seconds, or `now-60` and `now+600`: from the chain's time. When it ends goes before `validForSeconds`. */
  ...forTimes(() => time.optional()),
});

/**
 * The payment that is asked for, with its times in unix seconds.
 *
 * @param readNow the chain's time, which is only read for what is said from now
 * @throws {KitError} for a time before 1970
 */
export async function readPayment(
  { network, payer, amount, payTo, x402Version, validForSeconds, ...times }: z.infer<typeof payRequest>,
  readNow: () => Promise<bigint>,
): Promise<PaymentSpec> {
  async function read(name: string, text: string): Promise<bigint> {
    const seconds = text.startsWith("now")
      ? (await readNow()) + BigInt(text.slice(3).replace("+", ""))
      : BigInt(text);
    if (seconds < 0n) throw new KitError(`${name}: ${text} is before 1970, where unix time begins`);
    return seconds;
  }
  const authorization: Partial<PaymentTimes> = {};
  for (const { name } of timeFields) {
    const text = times[name];
    if (text !== undefined) authorization[name] = await read(name, text);
  }
  const to = payTo === undefined ? {} : { payTo };
  return { network, payer, amount, ...to, x402Version, validForSeconds, authorization };
}
