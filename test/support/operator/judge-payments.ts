import { type Address, type Hex, sameAddress } from "../../../src/protocol/hex.ts";
import type { Transfer } from "../transfers.ts";

/** A payment, and what those who sent it were answered. */
export type AnsweredPayment = {
  payer: Address;
  /**
   * What is to be moved, in the asset's smallest unit. No other payment of the payer has the same one, so that its transfer is
   * known by it, except 0, of which nothing is moved.
   */
  value: bigint;
  /** Whether it goes straight to its recipient, and not through the facilitator contract. */
  straight: boolean;
  /** Of the organization that is paid. */
  recipient: Address;
  /**
   * The transaction of each success, "" where it named none; the repeat of a success under its `Idempotency-Key` is none of
   * its own.
   */
  successes: readonly (Hex | "")[];
  /** The text of each answer that the payment has failed. */
  refusals: readonly string[];
  /** Whether it was answered that it was settled before: the success has got lost on its way. */
  saidToBeSettled: boolean;
};

/** What was wrong, a line for each payment. */
export type Verdict = { lost: string[]; twice: string[]; wrong: string[]; undecided: string[] };

/**
 * Compares what was answered with the transfers of the token, and with nothing else: neither with the service's own
 * events nor with its ledger. A payment through the contract is made where its payer's transfer to the facilitator contract and
 * the transfer from there to its recipient are in one transaction; the latter may be for several payments. One that goes
 * straight is made by its payer's transfer to its recipient. Payers do nothing else with the token.
 *
 * - `lost`: answered as paid, or taken from the payer, and the recipient has nothing;
 * - `twice`: transferred more than once, more than one success, or more or something else taken of a payer than was asked for;
 * - `wrong`: answered as failed. All payments are good, so that none may be; worst, of course, where it was transferred.
 *   Or a success that names a transaction which has not paid;
 * - `undecided`: never answered, whether transferred or not.
 */
export function judgePayments(
  payments: readonly AnsweredPayment[],
  transfers: readonly Transfer[],
  contract: Address,
): Verdict {
  const verdict: Verdict = { lost: [], twice: [], wrong: [], undecided: [] };
  const known = new Map(
    payments
      .filter(({ value }) => value > 0n)
      .map((payment) => [keyOf(payment.payer, payment.value), payment]),
  );
  const payers = new Set(payments.map(({ payer }) => lower(payer)));
  /** The transactions that took each payment from its payer. */
  const takenIn = new Map<AnsweredPayment, Hex[]>();
  /** What each recipient is due in a transaction, less what it got. */
  const missing = new Map<string, bigint>();
  const paidFor = (transaction: Hex, recipient: Address) => `${transaction} to ${lower(recipient)}`;
  const change = (key: string, by: bigint) => missing.set(key, (missing.get(key) ?? 0n) + by);

  for (const { transaction, from, to, value } of transfers) {
    if (sameAddress(from, contract)) {
      change(paidFor(transaction, to), -value);
      continue;
    }
    const payment = known.get(keyOf(from, value));
    if (payment === undefined) {
      if (payers.has(lower(from)))
        verdict.twice.push(`${value} of ${from} was taken, which nobody asked for`);
      continue;
    }
    takenIn.set(payment, [...(takenIn.get(payment) ?? []), transaction]);
    const { recipient, straight } = payment;
    if (!straight) change(paidFor(transaction, recipient), value);
    const signedTo = straight ? recipient : contract;
    if (!sameAddress(to, signedTo))
      verdict.lost.push(`${value} of ${from} went to ${to}, not to ${signedTo}`);
  }
  for (const [key, amount] of missing) {
    if (amount < 0n) verdict.twice.push(`${-amount} more than was taken from payers was paid in ${key}`);
  }
  for (const payment of payments) {
    const { payer, value, recipient, successes, refusals, saidToBeSettled } = payment;
    const transactions = takenIn.get(payment) ?? [];
    const say = (what: string) =>
      `${value} of ${payer}: ${what}; transferred by ${transactions.join() || "nothing"}, answered ${
        [...successes, ...refusals].join(", then ") || "nothing"
      }`;
    const isStranded = transactions.some(
      (transaction) => (missing.get(paidFor(transaction, recipient)) ?? 0n) > 0n,
    );
    const isAnswered = successes.length > 0 || refusals.length > 0 || saidToBeSettled;
    if (isStranded) verdict.lost.push(say("it was taken from the payer, and has not arrived"));
    if (transactions.length > 1) verdict.twice.push(say("it was transferred more than once"));
    if (successes.length > 1) verdict.twice.push(say("there was more than one success"));
    if (value > 0n && transactions.length === 0 && (successes.length > 0 || saidToBeSettled))
      verdict.lost.push(say("it was said to be paid"));
    if (value === 0n && successes.some((transaction) => transaction !== ""))
      verdict.wrong.push(say("a transaction was named, and nothing was to be moved"));
    if (refusals.length > 0) verdict.wrong.push(say("a good payment was refused"));
    if (
      transactions.length > 0 &&
      successes.some((transaction) => !transactions.some((one) => one === transaction))
    )
      verdict.wrong.push(say("another transaction was named"));
    if (!isAnswered) verdict.undecided.push(say("there was no answer"));
  }
  return verdict;
}

const lower = (address: Address) => address.toLowerCase();

function keyOf(payer: Address, value: bigint): string {
  return `${lower(payer)} ${value}`;
}
