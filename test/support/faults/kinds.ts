import type { CallMatch } from "../../../src/harness/faults/fault-spec.ts";
import type { ConnectionFaultSetter } from "../../../src/harness/faults/faults.ts";
import type { Scene } from "./stage.ts";

/** A kind of fault, and its effect on good payments. */
export type Kind = {
  name: string;
  /** The blocks on top of a settlement that make it a success; 1 by default. */
  confirmations?: number;
  /** How long a settle waits for its outcome. */
  settleWaitMs?: number;
  /** How long the authorizations are valid, in seconds. */
  validForSeconds?: number;
  /** How many payments with the largest allowed signatures are settled at once. */
  largePayments?: number;
  /** True if the service also has a good endpoint next to the bad one. */
  secondEndpoint?: boolean;
  /** Sets faults before the payments. */
  before?(scene: Scene): Promise<unknown>;
  /** True if mining is held, from before the payments until `during` has ended. */
  held?: boolean;
  /** Runs during the payments; if mining is held, once a transaction is sent. */
  during?(scene: Scene): Promise<unknown>;
  /**
   * Runs when mining is no longer held. All faults end with this or `during`; without either, they stay until every
   * payment is decided.
   */
  afterwards?(scene: Scene): Promise<unknown>;
  /** Runs when every payment is answered; afterwards all must be on chain again. */
  afterAnswers?(scene: Scene): Promise<unknown>;
  /** A response that settle must give at least once, besides the outcome. */
  alsoAnswers?: "pending" | "undecided";
  outcome?: "settled" | "failed";
};

const broadcasts = "eth_sendRawTransaction*";
const receipts = "eth_getTransactionReceipt";

const ofTheChain: readonly Kind[] = [
  // A batch of 50 of them would exceed the limit of a node.
  {
    name: "many payments with the largest signatures",
    largePayments: 80,
    settleWaitMs: 10_000,
    held: true,
    during: ({ wait }) => wait(1_000),
  },
  {
    name: "transactions are dropped",
    held: true,
    during: ({ chain }) => chain.drop(),
  },
  ...[1, 2, 3, 4, 5].map(
    (depth): Kind => ({
      name: `a reorganization of depth ${depth}`,
      confirmations: depth + 2,
      settleWaitMs: 5_000,
      async during({ chain, mine, mined, wait, random }) {
        await mined();
        if (depth > 1) await mine(depth - 1);
        await wait(random.between(0, 200));
        await chain.reorg(depth);
      },
    }),
  ),
  ...[2, 4].map(
    (depth): Kind => ({
      name: `a reorganization of depth ${depth} after the success, deeper than the confirmations`,
      async afterAnswers({ chain, mine }) {
        await mine(depth - 1);
        await chain.reorg(depth);
      },
    }),
  ),
  {
    name: "the gas money goes, and with it the transactions, while they wait",
    settleWaitMs: 500,
    held: true,
    async during({ chain, pending }) {
      await Promise.all([chain.emptyOperator(), chain.drop()]);
      await pending();
    },
    alsoAnswers: "pending",
  },
  {
    name: "the base fee rises above what was offered",
    settleWaitMs: 30_000,
    held: true,
    during: ({ chain, random }) => chain.baseFee(10n ** BigInt(random.between(9, 11))),
    afterwards: ({ mined }) => mined(),
  },
  {
    name: "nothing is mined past the waiting time",
    settleWaitMs: 2_500,
    held: true,
    during: ({ pending }) => pending(),
    alsoAnswers: "pending",
  },
  {
    name: "nothing is mined until the authorization has expired",
    validForSeconds: 60,
    settleWaitMs: 30_000,
    held: true,
    async during({ chain, advanceTime, claimed }) {
      await claimed();
      await Promise.all([chain.drop(), advanceTime(120)]);
    },
    outcome: "failed",
  },
  {
    name: "the operator has no gas money",
    settleWaitMs: 500,
    before: ({ chain }) => chain.emptyOperator(),
    during: async ({ undecided, wait }) => {
      await undecided();
      await wait(300);
    },
    alsoAnswers: "undecided",
  },
];

/** Faults of an endpoint: for some requests, or permanently next to a good endpoint. */
const misdeeds: readonly { name: string; set(on: ConnectionFaultSetter, scene: Scene): Promise<unknown> }[] =
  [
    { name: "the connection is reset", set: (on) => on.reset() },
    {
      name: "HTTP 429",
      set: (on, { random }) => on.rateLimited({ retryAfterSeconds: random.between(0, 1) }),
    },
    { name: "HTTP 5xx", set: (on, { random }) => on.status(random.pick([500, 502, 503, 504])) },
    { name: "an HTML page", set: (on) => on.malformed("html") },
    { name: "an answer that is cut off", set: (on) => on.malformed("cut-off") },
    { name: "a JSON-RPC error", set: (on) => on.error(-32_000, "header not found") },
    { name: "answers that come late", set: (on, { random }) => on.delay(random.between(50, 300)) },
    { name: "a stale head", set: (on, { random }) => on.staleHead(random.between(6, 20)) },
  ];

const ofTheOnlyEndpoint: readonly Kind[] = [
  ...misdeeds.map(
    ({ name, set }): Kind => ({
      name,
      before: (scene) => set(scene.on({ times: scene.random.between(2, 6) }), scene),
    }),
  ),
  ...misdeeds.map(
    ({ name, set }): Kind => ({
      name: `${name}, for every request of a second`,
      before: (scene) => set(scene.on(), scene),
      during: ({ wait }) => wait(1_000),
    }),
  ),
  {
    name: "a read gets no answer",
    before: ({ on, random }) => on({ method: "eth_call", nth: random.between(1, 2) }).hang(),
  },
  { name: "a broadcast gets no answer", before: ({ on }) => on({ method: broadcasts, nth: 1 }).hang() },
  {
    name: "a broadcast lands and its answer is lost",
    before: ({ on, random }) => on({ method: broadcasts, times: random.between(1, 2) }).answerLost(),
  },
  {
    name: "a broadcast lands and its answer comes too late",
    before: ({ on }) => on({ method: broadcasts, nth: 1 }).delay(11_000),
  },
  {
    name: "a broadcast is refused, and not sent",
    before: ({ on, random }) =>
      on({ method: broadcasts, times: random.between(1, 2) }).error(
        random.pick([-32_003, -32_000, -32_010]),
        random.pick(["nonce too low", "insufficient funds for gas * price + value", "already known"]),
      ),
  },
  {
    name: "a receipt of another transaction",
    before: ({ on, random }) => on({ method: receipts, times: random.between(3, 10) }).receiptOfAnother(),
  },
  {
    name: "a receipt of another transaction, under the hash that was asked for",
    before: ({ on, random }) =>
      on({ method: receipts, times: random.between(3, 10) }).receiptOfAnother({ disguised: true }),
  },
  {
    name: "a receipt of another transaction while nothing is mined",
    settleWaitMs: 500,
    held: true,
    before: ({ on }) => on({ method: receipts }).receiptOfAnother(),
    during: ({ pending }) => pending(),
    alsoAnswers: "pending",
  },
  {
    name: "a receipt of another transaction while nothing is mined, under the hash that was asked for",
    settleWaitMs: 500,
    held: true,
    before: ({ on }) => on({ method: receipts }).receiptOfAnother({ disguised: true }),
    during: ({ pending }) => pending(),
    alsoAnswers: "pending",
  },
  {
    name: "a receipt of one that was reverted while nothing is mined, under the hash that was asked for",
    settleWaitMs: 500,
    held: true,
    async before({ on, revertAnother }) {
      await revertAnother();
      await on({ method: receipts }).receiptOfAnother({ disguised: true });
    },
    during: ({ pending }) => pending(),
    alsoAnswers: "pending",
  },
  {
    name: "everything, one after the other",
    settleWaitMs: 5_000,
    async before({ on, random }) {
      const anywhere = (): CallMatch => ({ nth: random.between(1, 12), times: random.between(1, 2) });
      await on(anywhere()).reset();
      await on(anywhere()).rateLimited({ retryAfterSeconds: 0 });
      await on(anywhere()).malformed("cut-off");
      await on(anywhere()).status(502);
      await on(anywhere()).error(-32_000, "header not found");
      await on({ method: broadcasts, nth: random.between(1, 2) }).answerLost();
      await on({ method: receipts, nth: random.between(1, 6) }).receiptOfAnother({ disguised: true });
      await on(anywhere()).staleHead(5);
    },
  },
];

const besideAGoodEndpoint: readonly Kind[] = [
  ...misdeeds,
  { name: "no answers", set: (on: ConnectionFaultSetter) => on.hang() },
  { name: "answers after three seconds", set: (on: ConnectionFaultSetter) => on.delay(3_000) },
  {
    name: "broadcasts whose answers are lost",
    set: (_: unknown, { on }: Scene) => on({ method: broadcasts }).answerLost(),
  },
  {
    name: "broadcasts that get no answer",
    set: (_: unknown, { on }: Scene) => on({ method: broadcasts }).hang(),
  },
  {
    name: "broadcasts that are refused",
    set: (_: unknown, { on }: Scene) => on({ method: broadcasts }).error(-32_000, "nonce too low"),
  },
  {
    name: "receipts of other transactions",
    set: (_: unknown, { on }: Scene) => on({ method: receipts }).receiptOfAnother(),
  },
  {
    name: "receipts of other transactions, under the hashes that were asked for",
    set: (_: unknown, { on }: Scene) => on({ method: receipts }).receiptOfAnother({ disguised: true }),
  },
].map(({ name, set }) => ({
  name: `one endpoint of two always gives ${name}`,
  secondEndpoint: true,
  settleWaitMs: 5_000,
  before: (scene) => set(scene.on(), scene),
}));

export const kinds: readonly Kind[] = [...ofTheChain, ...ofTheOnlyEndpoint, ...besideAGoodEndpoint];
