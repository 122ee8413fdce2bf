import { type Address, type Hex, sameAddress } from "../../../src/protocol/hex.ts";
import type { Transfer } from "../transfers.ts";

/** A success that a caller received. */
export type Success = {
  /** "" if it named none. */
  transaction: Hex | "";
  /** The instance that sent it; undefined if unknown. */
  instance: string | undefined;
  /** When its caller received it, in milliseconds, on the same clock as {@link Kill}. */
  at: number;
};

/** An instance that was ended without warning, and when. It is not back before {@link shortestAbsenceMs}. */
export type Kill = { instance: string; at: number };

/**
 * The longest time between a success and the kill of its instance that excuses a second success: a delivery is recorded
 * after the response, in less time than this.
 */
const recordMs = 1_000;

/** A caller may read a response this much later than its instance died, and no instance answers this soon after its death. */
const shortestAbsenceMs = 500;

/** A payment, and the responses to those who sent it. */
export type AnsweredPayment = {
  payer: Address;
  /**
   * The amount to move, in the asset's smallest unit. It identifies the transfer, since no other payment of the payer
   * has the same amount; except 0, which moves nothing.
   */
  value: bigint;
  /** True if it goes directly to its recipient, not through the facilitator contract. */
  straight: boolean;
  /** The wallet of the organization that is paid. */
  recipient: Address;
  /** Every success; a repeated success under the same `Idempotency-Key` does not count again. */
  successes: readonly Success[];
  /** The text of every response that says the payment failed. */
  refusals: readonly string[];
  /** True if the response was that it was settled before: the success was lost on its way. */
  saidToBeSettled: boolean;
};

/** The faults, one line per payment. */
export type Verdict = {
  lost: string[];
  twice: string[];
  handedOverAgain: string[];
  wrong: string[];
  undecided: string[];
};

/**
 * Compares the responses with the token's transfers, and with nothing else: not with the service's own events or its
 * ledger. A payment through the contract is made if its payer's transfer to the facilitator contract and the transfer
 * from there to its recipient are in one transaction; the latter may cover several payments. A direct payment is made
 * by its payer's transfer to its recipient. Payers do nothing else with the token.
 *
 * - `lost`: answered as paid, or taken from the payer, but the recipient got nothing;
 * - `twice`: transferred more than once, more than one success, or more or something else taken from a payer than
 *   requested;
 * - `handedOverAgain`: more than one success, where the instance of each but the last was killed right after it, before
 *   it had recorded the delivery, which docs/decisions/0016-delivery.md allows. Nothing is paid twice, and no other cause
 *   counts;
 * - `wrong`: answered as failed, although all payments are good; worst if it was transferred. Or a success that names a
 *   transaction which has not paid, unless that is in `replaced`, whose blocks vanished after they had been there:
 *   another transaction may then have to pay
 *   (docs/decisions/0035-two-endpoints.md#reorganizations-deeper-than-confirmations);
 * - `undecided`: never answered, whether transferred or not.
 */
export function judgePayments(
  payments: readonly AnsweredPayment[],
  transfers: readonly Transfer[],
  contract: Address,
  { kills = [], replaced = new Set() }: { kills?: readonly Kill[]; replaced?: ReadonlySet<string> } = {},
): Verdict {
  const verdict: Verdict = { lost: [], twice: [], handedOverAgain: [], wrong: [], undecided: [] };
  const known = new Map(
    payments
      .filter(({ value }) => value > 0n)
      .map((payment) => [keyOf(payment.payer, payment.value), payment]),
  );
  const payers = new Set(payments.map(({ payer }) => lower(payer)));
  /** The transactions that took each payment from its payer. */
  const takenIn = new Map<AnsweredPayment, Hex[]>();
  /** The amount that each recipient is due in a transaction, minus what it got. */
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
        [
          ...successes.map(
            ({ transaction, instance, at }) => `${transaction} by ${instance} at ${at.toFixed()}`,
          ),
          ...refusals,
        ].join(", then ") || "nothing"
      }`;
    const isStranded = transactions.some(
      (transaction) => (missing.get(paidFor(transaction, recipient)) ?? 0n) > 0n,
    );
    const isAnswered = successes.length > 0 || refusals.length > 0 || saidToBeSettled;
    if (isStranded) verdict.lost.push(say("it was taken from the payer, and has not arrived"));
    if (transactions.length > 1) verdict.twice.push(say("it was transferred more than once"));
    if (successes.length > 1) {
      const excused = endedByKills(successes, kills);
      verdict[excused ? "handedOverAgain" : "twice"].push(say("there was more than one success"));
    }
    if (value > 0n && transactions.length === 0 && (successes.length > 0 || saidToBeSettled))
      verdict.lost.push(say("it was said to be paid"));
    if (value === 0n && successes.some(({ transaction }) => transaction !== ""))
      verdict.wrong.push(say("a transaction was named, and nothing was to be moved"));
    if (refusals.length > 0) verdict.wrong.push(say("a good payment was refused"));
    if (
      transactions.length > 0 &&
      successes.some(({ transaction }) => ![...transactions, ...replaced].includes(transaction))
    )
      verdict.wrong.push(say("another transaction was named"));
    if (!isAnswered) verdict.undecided.push(say("there was no answer"));
  }
  return verdict;
}

/** Returns true if all successes but the last were sent right before their instances were killed. */
function endedByKills(successes: readonly Success[], kills: readonly Kill[]): boolean {
  const inOrder = successes.toSorted((a, b) => a.at - b.at);
  return inOrder.slice(0, -1).every((success) =>
    kills.some(({ instance, at }) => {
      const later = at - success.at;
      return instance === success.instance && later >= -shortestAbsenceMs && later <= recordMs;
    }),
  );
}

const lower = (address: Address) => address.toLowerCase();

function keyOf(payer: Address, value: bigint): string {
  return `${lower(payer)} ${value}`;
}
