import type { CaseRow } from "../frame/run-cases.ts";
import type { ChannelVisit } from "./channel-case-shop.ts";

/** A misbehaving shop that sells on channels: a careless client lets it take more than it sold, or has its money locked up. */
export type ChannelClientCase = CaseRow & {
  /** How many purchases each process of the client makes; the processes run one after the other. */
  runs: readonly number[];
  /** How many goods the client must get in the last process; none if it may stop. */
  mustGet?: number;
  /** Answers a valid payment that covers the price; by default the shop charges the price and serves. */
  paid?(visit: ChannelVisit): Promise<void>;
};

const staysWithin = "Goes on from its own total, or stops: it signs no more than was charged, and the price.";

/** The cases of `judge client` for scheme "batch-settlement". The first one tests that the client works at all. */
export const channelClientCases: readonly ChannelClientCase[] = [
  {
    name: "on-one-deposit",
    situation: "Sells three times on one channel, and suggests a deposit of ten times the price.",
    good: "Deposits once, and signs each time what was charged before and the price.",
    runs: [3],
    mustGet: 3,
  },
  {
    name: "charges-less",
    situation: "Charges half of the price each time.",
    good: "Adds chargedAmount of the receipt to its total, not the price.",
    runs: [3],
    mustGet: 3,
    paid: (visit) => visit.sell({ amount: visit.price / 2n }),
  },
  {
    name: "memory-lost",
    situation:
      "Charges the second purchase, and the answer is lost. Another process of the client comes: for less than was charged it gets a 402 with the channel's state and its own newest voucher.",
    good: "Reads the channel from the chain instead of a second deposit, believes what its own voucher proves, and signs that and the price.",
    runs: [2, 1],
    mustGet: 1,
    paid: (visit) => visit.sell({ isLost: visit.sold === 1 }),
  },
  {
    name: "charged-too-high",
    situation: "Charges the price, and says twice as much in chargedAmount.",
    good: staysWithin,
    runs: [3],
    paid: (visit) => visit.sell({ said: { charged: 2n * visit.price } }),
  },
  {
    name: "total-too-high",
    situation: "Charges the price, and names a higher total in channelState of its receipt.",
    good: staysWithin,
    runs: [3],
    paid: (visit) => visit.sell({ said: { total: visit.charged + 4n * visit.price } }),
  },
  {
    name: "state-above-voucher",
    situation: "Answers the second purchase with a 402 whose state is above the voucher that comes with it.",
    good: "Believes no charge that its own voucher does not cover, and stops.",
    runs: [2],
    paid: (visit) => lie(visit, { charged: visit.charged + 2n * visit.price }),
  },
  {
    name: "state-unproven",
    situation:
      "Answers the second purchase with a 402 whose state comes with a voucher that the client did not sign.",
    good: "Believes no charge without its own signature, and stops.",
    runs: [2],
    paid: (visit) =>
      lie(visit, { charged: visit.charged + 2n * visit.price, signed: visit.charged + 2n * visit.price }),
  },
  {
    name: "deposit-kept",
    situation: "Submits the deposit of the first purchase, and asks for payment again.",
    good: "Sends the same payment again, signs a voucher for what the chain shows in the channel, or stops. It signs no second deposit.",
    runs: [1],
    async paid(visit) {
      if (!visit.isFirst) return visit.sell();
      await visit.deposit();
      await visit.ask("try again");
    },
  },
];

/** Answers later purchases with a false channel state, unless their vouchers already rely on it. */
async function lie(visit: ChannelVisit, said: { charged: bigint; signed?: bigint }): Promise<void> {
  if (visit.sold === 0 || visit.isTooHigh) return visit.sell();
  await visit.correct(said);
}
