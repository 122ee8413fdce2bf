import { type Address, type Hex, sameAddress } from "../../../src/protocol/hex.ts";
import type { Transfer } from "../transfers.ts";

/** A success that a caller was given. */
export type Success = {
  /** "" where it named none. */
  transaction: Hex | "";
  /** Which instance gave it; undefined where that is not known. */
  instance: string | undefined;
  /** When its caller had it, in milliseconds, on the clock of {@link Kill}. */
  at: number;
};

/** An instance that was ended without warning, and when. It is not back before {@link shortestAbsenceMs}. */
export type Kill = { instance: string; at: number };

/**
 * How long after a success its instance must have been killed, at most, for a second success to be one that was handed over
 * again: what was delivered is recorded after the answer, in less time than this.
 */
const recordMs = 1_000;

/** A caller may read an answer this much later than its instance died, and no instance answers so soon after its death. */
const shortestAbsenceMs = 500;

/** A payment, and what those who sent it were answered. */
export type AnsweredPayment = {
  payer: Address;
  /**
   * The amount to move, in the asset's smallest unit. No other payment of the payer has the same one, so that its transfer is
   * known by it, except 0, of which nothing is moved.
   */
  value: bigint;
  /** True if it goes straight to its recipient, not through the facilitator contract. */
  straight: boolean;
  /** Of the organization that is paid. */
  recipient: Address;
  /** Each success; the repeat of a success under its `Idempotency-Key` is none of its own. */
  successes: readonly Success[];
  /** The text of each answer that the payment has failed. */
  refusals: readonly string[];
  /** True if the answer was that it was settled before: the success got lost on its way. */
  saidToBeSettled: boolean;
};

/** The faults, a line for each payment. */
export type Verdict = {
  lost: string[];
  twice: string[];
  handedOverAgain: string[];
  wrong: string[];
  undecided: string[];
};

/**
 * Compares what was answered with the transfers of the token, and with nothing else: neither with the service's own
 * events nor with its ledger. A payment through the contract is made where its payer's transfer to the facilitator contract and
 * the transfer from there to its recipient are in one transaction; the latter may be for several payments. One that goes
 * straight is made by its payer's transfer to its recipient. Payers do nothing else with the token.
 *
 * - `lost`: answered as paid, or taken from the payer, and the recipient has nothing;
 * - `twice`: transferred more than once, more than one success, or more or something else taken of a payer than was asked for;
 * - `handedOverAgain`: more than one success, and right after each but the last its instance was killed: before it had
 *   recorded that it was handed over, which docs/decisions/0016-delivery.md allows. Nothing is paid twice, and no other cause
 *   counts;
 * - `wrong`: answered as failed. All payments are good, so that none may be; worst, of course, where it was transferred.
 *   Or a success that names a transaction which has not paid, unless that is one of `replaced`, whose blocks vanished after
 *   they had been there: another one may then have to pay (docs/decisions/0035-two-endpoints.md#reorganizations-deeper-than-confirmations);
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
  /** The amount that each recipient is due in a transaction, less what it got. */
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

/** Returns true if all successes but the last were given right before their instances were killed. */
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
