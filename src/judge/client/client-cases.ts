import { setTimeout as sleep } from "node:timers/promises";
import type { CaseRow } from "../frame/run-cases.ts";
import { type Offer, stranger } from "../scene/offers.ts";
import type { ShopScene } from "../scene/scene.ts";
import type { PaidVisit, ResetPlace, Visit } from "./visits.ts";

/** A misbehaving shop: a careless client pays twice, pays for nothing, or pays too much. */
export type ClientCase = CaseRow & {
  /** How many processes of the client run at once. */
  runs?: number;
  /** Options for a facilitator and chain of its own, if the case would disturb the others. */
  own?: { settleWaitMs?: number; aheadSeconds?: number };
  /** True if another network or token is offered, so the payer needs funds there. */
  offersOthers?: boolean;
  /** True if, once the client has ended, the shop settles payments that are valid for longer than it asked. */
  settlesLate?: boolean;
  /** True if the first payment's goods are never redelivered, so a client that paid once and stopped is right. */
  keepsGoods?: boolean;
  /** True if a second payment is wrong even if nothing is paid twice: the client cannot know that the first moved nothing. */
  allowsOnePayment?: boolean;
  /** The offers in the 402; by default the scene's one offer. */
  offers?(scene: ShopScene): Promise<readonly Offer[]>;
  /** Answers a request without payment; by default with a 402. */
  unpaid?(visit: Visit): Promise<void>;
  /** Answers a request with payment; by default the shop settles it and serves. */
  paid?(visit: PaidVisit, options: { slowMs: number }): Promise<void>;
};

const sendAgain =
  "Sends the same payment again: it can be settled only once, so the goods come and nothing is paid a second time.";
const signNothing = "Signs nothing, and says why.";
const stopOrSendAgain =
  "Stops, or sends the same payment again. It signs no second one while the first can still be settled.";

/** The cases of `judge client`. The first one tests that the client works at all. */
export const clientCases: readonly ClientCase[] = [
  {
    name: "plain",
    situation: "Asks 0.01 of the token, settles, and serves.",
    good: "Pays once, and has what it paid for.",
  },
  {
    name: "slow-answer",
    situation: "Settles at once, and answers after longer than many clients wait.",
    good: `Waits, or after its time-out does this. ${sendAgain}`,
    order: "early",
    async paid(visit, { slowMs }) {
      const settled = await visit.settle();
      if (visit.isFirst) await sleep(slowMs);
      await (settled.success ? visit.serve(settled) : visit.sell());
    },
  },
  {
    name: "pending",
    situation:
      "The chain is slow: the facilitator says pending, the shop 402 again; then the payment is settled.",
    good: `The receipt says settlement_pending and names the transaction. ${sendAgain}`,
    own: { settleWaitMs: 1_500 },
    async paid(visit) {
      if (!visit.isFirst) return visit.sell();
      const held = await visit.scene.holdBlocks();
      const pending = await visit.settle();
      // Long enough for a client to sign a second payment.
      visit.later(500, () => held.remove());
      // On a busy machine the facilitator may not even have sent the transaction yet.
      if (!pending.isPending && pending.reason !== "unexpected_settle_error") return visit.sell();
      await askWithReceipt(visit, "settlement_pending", pending.transaction);
    },
  },
  {
    name: "pending-refused",
    situation:
      "The shop answers 402, the receipt says pending; but the payment fails on chain, and is refused from then on.",
    good: "Sends the same payment again, and stops when it is refused; or signs another once it has seen on chain that nothing was paid.",
    async paid(visit) {
      if (!visit.isFirst) return visit.sell();
      await visit.scene.cancel(visit.payment, visit.payer);
      await askWithReceipt(visit, "settlement_pending", `0x${"11".repeat(32)}`);
    },
  },
  {
    name: "shop-answer-lost",
    situation: "Settles, and the connection is reset instead of an answer.",
    good: sendAgain,
    paid: (visit) => resetOnce(visit, "instead of an answer"),
  },
  {
    name: "nothing-redelivered",
    situation:
      "Settles, and the connection is reset instead of an answer; the same payment is then refused as already used.",
    good: "Stops: a used authorization was paid, if the client did not cancel it. It signs no second one.",
    keepsGoods: true,
    async paid(visit) {
      if (visit.repeats > 0) return visit.ask({ error: "invalid_exact_evm_nonce_already_used" });
      await resetOnce(visit, "instead of an answer");
    },
  },
  {
    name: "reset-before-body",
    situation: "Settles, sends the headers of a 200, and the connection is reset.",
    good: sendAgain,
    paid: (visit) => resetOnce(visit, "before the body"),
  },
  {
    name: "reset-in-body",
    situation: "Settles, sends half of the body, and the connection is reset.",
    good: `Takes half a body for none. ${sendAgain}`,
    paid: (visit) => resetOnce(visit, "in the body"),
  },
  {
    name: "reset-after-body",
    situation: "Settles, sends the whole body, and the connection is reset.",
    good: "Has what it paid for.",
    paid: (visit) => resetOnce(visit, "after the body"),
  },
  {
    name: "facilitator-answer-lost",
    situation: "Settles, the facilitator's answer is lost, and the shop asks for payment again.",
    good: `A 402 does not say that nothing was paid. ${sendAgain}`,
    async paid(visit) {
      if (!visit.isFirst) return visit.sell();
      await visit.settleAndLoseAnswer();
      await visit.ask({ error: "unexpected_settle_error" });
    },
  },
  {
    name: "receipt-denies",
    situation:
      "Settles, the facilitator's answer is lost, and the shop answers 402 with a receipt that says success: false.",
    good: `A receipt is what the shop knows. ${sendAgain}`,
    async paid(visit) {
      if (!visit.isFirst) return visit.sell();
      await visit.settleAndLoseAnswer();
      await askWithReceipt(visit, "unexpected_settle_error", "");
    },
  },
  {
    name: "unavailable-after-settle",
    situation: "Settles, but answers 503 with Retry-After: 1.",
    good: `Waits for the time in Retry-After. ${sendAgain}`,
    async paid(visit) {
      if (visit.repeats > 0) return visit.sell();
      await visit.settle();
      await visit.send(503, { "Retry-After": "1" }, "try again");
    },
  },
  {
    name: "bad-gateway",
    situation: "A proxy before the shop answers the payment with 502, without Retry-After.",
    good: stopOrSendAgain,
    paid: (visit) => (visit.isFirst ? visit.send(502) : visit.sell()),
  },
  {
    name: "asks-again",
    situation: "Answers the payment with the same 402 again, and settles every payment later.",
    good: stopOrSendAgain,
    paid: (visit) => (visit.isFirst ? visit.ask({ error: "try again" }) : visit.sell()),
  },
  {
    name: "asks-more",
    situation: "Answers the payment with a 402 that asks twice as much.",
    good: "Signs no second payment: the first can still be settled.",
    async paid(visit) {
      const { offer } = visit.scene;
      if (visit.payment.signed.limit > offer.amount) return visit.sell();
      await visit.ask({ error: "the price has changed", offers: [{ ...offer, amount: 2n * offer.amount }] });
    },
  },
  {
    name: "other-terms",
    situation: "Answers the payment with a 402 that names another recipient.",
    good: "Signs no second payment: the first can still be settled.",
    async paid(visit) {
      if (visit.othersBefore > 0) return visit.sell();
      await visit.ask({ error: "try again", offers: [{ ...visit.scene.offer, payTo: stranger }] });
    },
  },
  {
    name: "thousandfold",
    situation: "Asks a thousand times the price, which is more than X402_MAX_AMOUNT.",
    good: signNothing,
    offers: async ({ offer }) => [{ ...offer, amount: 1_000n * offer.amount }],
  },
  {
    name: "other-network-first",
    offersOthers: true,
    situation: "Offers another network before X402_NETWORK.",
    good: "Pays on X402_NETWORK.",
    offers: async ({ offer, otherNetwork }) => [...(otherNetwork === undefined ? [] : [otherNetwork]), offer],
  },
  {
    name: "other-asset-first",
    offersOthers: true,
    situation: "Offers another token before X402_ASSET.",
    good: "Pays in X402_ASSET.",
    offers: async (scene) => [await strangersOffer(scene), scene.offer],
  },
  {
    name: "redirect",
    situation: "Answers the payment with a redirect (307), and sells where that leads.",
    good: "Follows with the same payment, or stops. It signs no second one while the first can still be settled.",
    paid: (visit) => (visit.path === "report" ? visit.send(307, { Location: "moved" }) : visit.sell()),
  },
  {
    name: "redirect-elsewhere",
    situation:
      "Answers the payment with a redirect (307) to another origin, where a stranger buys with what it is sent.",
    good: "Sends the payment to nobody but the shop: whoever has it can have the goods.",
    paid: (visit) => (visit.isFirst ? visit.send(307, { Location: visit.elsewhere }) : visit.sell()),
  },
  {
    name: "settles-late",
    situation:
      "Answers the payment with 500, and settles it later, if it is valid for longer than maxTimeoutSeconds.",
    good: "Signs for maxTimeoutSeconds at most, after which it can be sure that nothing is paid.",
    settlesLate: true,
    paid: (visit) => visit.send(500),
  },
  {
    name: "parallel",
    situation: "Sells to two of the client at the same time, which have the same key.",
    good: "Each pays once, with an authorization nonce that is random.",
    runs: 2,
  },
  {
    name: "used-authorization",
    situation: "The authorization is already used on chain, without having paid: the facilitator refuses it.",
    good: "Stops: the refusal does not say that nothing was paid. It signs no second one.",
    allowsOnePayment: true,
    async paid(visit) {
      if (visit.isFirst) await visit.scene.cancel(visit.payment, visit.payer);
      await visit.sell();
    },
  },
  {
    name: "clock-behind",
    situation: "The chain is an hour ahead of the client's clock: what it signs has expired.",
    good: "Says so and stops, or goes by the time in the Date header.",
    own: { aheadSeconds: 3_600 },
  },
  {
    name: "clock-ahead",
    situation: "The chain is five minutes behind the client's clock.",
    good: "Pays once, or says that its authorization is not valid yet, and stops.",
    own: { aheadSeconds: -300 },
  },
  {
    name: "malformed-402",
    situation: "Answers 402 with terms that cannot be read.",
    good: signNothing,
    unpaid: (visit) =>
      visit.send(402, { "PAYMENT-REQUIRED": "%%%", "content-type": "application/json" }, "{"),
  },
  {
    name: "malformed-receipt",
    situation: "Settles and serves, with a receipt that cannot be read.",
    good: "Has what it paid for: the goods are in the body.",
    async paid(visit) {
      const settled = await visit.settle();
      await (settled.success ? visit.serve(settled, { receipt: "%%%" }) : visit.sell());
    },
  },
  {
    name: "receipt-of-other-network",
    situation: "Settles and serves, with a receipt that names another network.",
    good: "Has what it paid for: the goods are in the body.",
    paid: (visit) =>
      serveWith(visit, { network: visit.payment.x402Version === 1 ? "avalanche" : "eip155:43114" }),
  },
  {
    name: "receipt-of-other-payer",
    situation: "Settles and serves, with a receipt that names another payer.",
    good: "Has what it paid for: the goods are in the body.",
    paid: (visit) => serveWith(visit, { payer: stranger }),
  },
];

/** Asks for payment again, with a receipt that says the payment has not succeeded. */
async function askWithReceipt(visit: PaidVisit, errorReason: string, transaction: string): Promise<void> {
  const name = visit.payment.x402Version === 1 ? "X-PAYMENT-RESPONSE" : "PAYMENT-RESPONSE";
  const receipt = visit.receipt({ success: false, errorReason, transaction });
  await visit.ask({ error: errorReason, headers: { [name]: receipt, "Retry-After": "1" } });
}

/** Settles and serves with a receipt whose members are replaced by `changes`. */
async function serveWith(visit: PaidVisit, changes: Record<string, unknown>): Promise<void> {
  const settled = await visit.settle();
  const receipt = visit.receipt({ transaction: settled.transaction, ...changes });
  await (settled.success ? visit.serve(settled, { receipt }) : visit.sell());
}

/** Settles and serves, but resets the connection of the first payment. */
async function resetOnce(visit: PaidVisit, reset: ResetPlace): Promise<void> {
  const settled = await visit.settle();
  if (!settled.success || !visit.isFirst) return visit.sell();
  await visit.serve(settled, { reset });
}

/** The same price in another token, to another recipient. */
async function strangersOffer(scene: ShopScene): Promise<Offer> {
  return { ...scene.offer, asset: await scene.otherAsset(), payTo: stranger };
}
