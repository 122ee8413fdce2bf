import { z } from "zod";
import { methodViewSchema } from "../../methods/method-view.ts";
import { methods } from "../../methods/methods.ts";
import { viewOf } from "../../methods/people.ts";
import type { FaultForm } from "../../observe/studio/harness-views.ts";
import { paymentSummarySchema } from "../../observe/timeline/payment-view.ts";
import { tokenNamed } from "../../payer/local-chains.ts";
import { jsonAmount, termMembers } from "../../payer/payment-order.ts";
import { toUnits } from "../../payer/terms.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import { address, bytes32, strictMembers } from "../../protocol/primitives.ts";
import { ConfigurationError } from "../../util/errors.ts";
import { describeFaults, readFaultReport } from "../faults/faults.ts";
import {
  type JournalStore,
  noJournal,
  otherRequestSchema,
  paymentJournalSchema,
} from "../journal/journal.ts";
import { type ControlledHarness, type News, requireAccount } from "../run/running-harness.ts";
import { sessionSchema } from "../run/session.ts";
import type { HarnessChain } from "../setup/prepare-chain.ts";
import { describeChain } from "./describe-chain.ts";
import { harnessDescriptionSchema, notRunning } from "./description.ts";
import { payRequest, readPayment } from "./pay-request.ts";

/**
 * An action on a running harness. The route, its client, the API document and the methods of `HarnessControl` are derived
 * from its row in {@link actions}.
 */
export type Action<Body, Answer> = {
  route: `${"GET" | "POST"} /harness${string}`;
  /** For the OpenAPI document; without it, only the kit's own client uses the route. */
  docs?: { summary: string; answer: string };
  body: z.ZodType<Body>;
  answer: z.ZodType<Answer>;
  run(harness: ControlledHarness, body: Body): NoInfer<Answer> | Promise<NoInfer<Answer>>;
  /** Only for actions with effects that a shop may notice. */
  news?(body: Body): News;
};

export type AnyAction = Action<unknown, unknown>;

/** Infers the types of a row. */
const action = <Body, Answer>(row: Action<Body, Answer>) => row;

const onNetwork = { network: z.string() };
const byId = strictMembers({ id: z.string() });
/** The empty body. It rejects all fields: a reset with `{ network }` must not silently reset all networks. */
export const noBody = strictMembers({});

const { units, asset } = termMembers;
const tokens = { amount: termMembers.amount.unwrap(), units, asset };
const amounts = { amount: z.string(), units: z.boolean(), asset: address };
const done = z.object({});
const report = z.unknown().transform(readFaultReport);
const failure = z.object({ message: z.string(), hints: z.array(z.string()).readonly() });

export const actions = {
  describeHarness: action({
    route: "GET /harness",
    docs: { summary: "What runs here, and with which keys", answer: "All of it" },
    body: noBody,
    answer: harnessDescriptionSchema,
    run: ({ description }) => description,
  }),
  listChains: action({
    route: "GET /harness/chains",
    docs: { summary: "How the chains stand: block, time, balances", answer: "Each chain" },
    body: noBody,
    answer: z.array(
      z.object({
        network: z.string(),
        blockNumber: z.int(),
        time: z.int(),
        balances: z.record(z.string(), z.string()),
        operatorGasMoney: z.string(),
      }),
    ),
    async run({ chains, description }) {
      const { recipient } = description.organization;
      return Promise.all(Object.values(chains).map((chain) => describeChain(chain, recipient)));
    },
  }),
  /** Gives an account an amount of the network's asset, or of another token. */
  fund: action({
    route: "POST /harness/fund",
    docs: { summary: "Gives an account some of the token", answer: "The added amount" },
    body: strictMembers({ ...onNetwork, to: z.string(), ...tokens }),
    answer: z.object({ ...onNetwork, to: z.string(), ...amounts }),
    async run(harness, body) {
      const { chain, token, count } = readTokens(harness, body);
      await chain.fund(requireAccount(body.to), count, body.asset);
      return { ...body, asset: token.address };
    },
    news: ({ network, amount, units, to }) => ({
      what: "fund",
      more: `${network}: ${amount}${units ? " of the smallest unit" : ""} to ${to}`,
    }),
  }),
  /** Approves Permit2, and all other contracts that payers approve, for an amount of an account's tokens. */
  approve: action({
    route: "POST /harness/approve",
    docs: { summary: "Lets Permit2 take tokens of an account", answer: "How much it may take" },
    body: strictMembers({ ...onNetwork, account: z.string(), ...tokens }),
    answer: z.object({ ...onNetwork, account: z.string(), ...amounts, spender: address }),
    async run(harness, body) {
      const { permit2Address } = await import("../../methods/permit2/permit.ts");
      const { chain, token, count } = readTokens(harness, body);
      await chain.approvePermit2(requireAccount(body.account), count, body.asset);
      return { ...body, spender: permit2Address, asset: token.address };
    },
  }),
  pay: action({
    route: "POST /harness/pay",
    docs: { summary: "Signs a payment, verifies and settles it", answer: "Both answers" },
    body: payRequest,
    answer: z.object({ verify: z.unknown(), settle: z.unknown() }),
    async run(harness, body) {
      const { pay } = await import("./pay.ts");
      const { payment, times } = await readPayment(body, () => runningChain(harness, body.network).now());
      const { verify, settle } = await pay(harness.description, payment, undefined, times);
      return { verify: verify.body, settle: settle.body };
    },
  }),
  listMethods: action({
    route: "GET /harness/methods",
    docs: { summary: "The payment methods there are, the usual one first", answer: "Each of them" },
    body: noBody,
    answer: z.array(methodViewSchema),
    run: () => methods.toReversed().map(viewOf),
  }),
  advanceTime: action({
    route: "POST /harness/advance-time",
    docs: { summary: "Moves the time of a chain forward", answer: "The chain's time after that" },
    body: strictMembers({ ...onNetwork, seconds: z.number() }),
    answer: z.object({ ...onNetwork, now: z.int().max(8_640_000_000_000) }),
    async run(harness, { network, seconds }) {
      return { network, now: Number(await runningChain(harness, network).advanceTime(seconds)) };
    },
    news: ({ network, seconds }) => ({ what: "time", more: `${network}: ${seconds} s forward` }),
  }),
  mine: action({
    route: "POST /harness/mine",
    docs: { summary: "Mines blocks", answer: "How many" },
    body: strictMembers({ ...onNetwork, blocks: z.number() }),
    answer: z.object({ ...onNetwork, blocks: z.int() }),
    async run(harness, body) {
      await runningChain(harness, body.network).mine(body.blocks);
      return body;
    },
  }),
  reset: action({
    route: "POST /harness/reset",
    docs: { summary: "Puts everything back to its start", answer: "It is done" },
    body: noBody,
    answer: done,
    run: ({ reset }) => reset().then(() => ({})),
    news: () => ({ what: "reset", more: "chains and ledger are as they were at the start" }),
  }),
  /** Returns the whole session, for another harness to continue from. */
  session: action({
    route: "POST /harness/state",
    docs: {
      summary: "Gives the whole session: chains, ledger, story, faults and settings",
      answer: "The content of a file for `up --state`, which packs it with gzip",
    },
    body: noBody,
    answer: sessionSchema,
    run: ({ session }) => session(),
  }),
  /** Returns an id for `restore`. */
  snapshot: action({
    route: "POST /harness/snapshot",
    docs: { summary: "Remembers everything as it is", answer: "Its id" },
    body: noBody,
    answer: z.object({ id: z.string() }),
    run: async ({ snapshot }) => ({ id: await snapshot() }),
  }),
  restore: action({
    route: "POST /harness/restore",
    docs: { summary: "Puts everything back to a snapshot", answer: "It is done" },
    body: byId,
    answer: done,
    run: ({ restore }, { id }) => restore(id).then(() => ({})),
  }),
  listFaultKinds: action({
    route: "GET /harness/faults/kinds",
    docs: { summary: "The faults there are", answer: "Each kind" },
    body: noBody,
    answer: z.custom<FaultForm>(),
    run: describeFaults,
  }),
  addFault: action({
    route: "POST /harness/faults/add",
    docs: { summary: "Makes the RPC or a chain fail", answer: "The fault, with its id" },
    body: z.looseObject({}),
    answer: report,
    run: ({ faults }, spec) => faults.add(spec),
    news: ({ network, kind }) => ({ what: "fault", more: `${network}: ${kind} is set`, isBad: true }),
  }),
  listFaults: action({
    route: "POST /harness/faults/list",
    docs: { summary: "The faults in effect", answer: "Each of them" },
    body: noBody,
    answer: z.object({ faults: z.array(report).readonly() }),
    run: async ({ faults }) => ({ faults: await faults.list() }),
  }),
  removeFault: action({
    route: "POST /harness/faults/remove",
    docs: { summary: "Ends a fault", answer: "Whether there was one" },
    body: byId,
    answer: z.object({ removed: z.boolean() }),
    run: async ({ faults }, { id }) => ({ removed: await faults.remove(id) }),
    news: () => ({ what: "fault", more: "one was ended" }),
  }),
  clearFaults: action({
    route: "POST /harness/faults/clear",
    docs: { summary: "Ends all faults", answer: "It is done" },
    body: noBody,
    answer: done,
    run: ({ faults }) => faults.clear().then(() => ({})),
    news: () => ({ what: "fault", more: "all were ended" }),
  }),
  /** Returns the outcome of each payment, newest first. */
  payments: action({
    route: "POST /harness/payments",
    body: noBody,
    answer: z.object({ payments: z.array(paymentSummarySchema).readonly() }),
    run: async ({ payments }) => ({ payments: await payments.list() }),
  }),
  journalPayment: action({
    route: "POST /harness/journal/payment",
    body: strictMembers({ id: bytes32 }),
    answer: z.object({ payment: paymentJournalSchema.nullable() }),
    async run({ journal, payments }, { id }) {
      const payment = kept(journal).payment(id);
      return { payment: payment ? { ...payment, explanations: await payments.explain(id) } : null };
    },
  }),
  journalPayments: action({
    route: "POST /harness/journal/payments",
    body: noBody,
    answer: z.object({ payments: z.array(bytes32).readonly() }),
    run: ({ journal }) => ({ payments: kept(journal).payments() }),
  }),
  otherRequests: action({
    route: "POST /harness/journal/other-requests",
    body: noBody,
    answer: z.object({ requests: z.array(otherRequestSchema).readonly() }),
    run: ({ journal }) => ({ requests: kept(journal).otherRequests() }),
  }),
  /** Returns how many calls each forked chain could not answer, with the latest reason. */
  forkFailures: action({
    route: "POST /harness/fork-failures",
    body: noBody,
    answer: z.array(z.object({ count: z.int(), latest: failure.optional() })),
    run: ({ forkFailures }) =>
      forkFailures().map(({ count, latest }) => ({
        count,
        latest: latest && { message: latest.message, hints: latest.hints },
      })),
  }),
  /** Returns the next authorization nonce derived from the seed; null without a seed. */
  nextAuthorizationNonce: action({
    route: "POST /harness/authorization-nonce",
    body: noBody,
    answer: z.object({ nonce: bytes32.nullable() }),
    run: ({ nextAuthorizationNonce }) => ({ nonce: nextAuthorizationNonce() ?? null }),
  }),
} as const;

/** @throws ConfigurationError if the harness does not run the network */
export function runningChain({ chains }: ControlledHarness, network: NetworkName): HarnessChain {
  const chain = chains[network];
  if (chain !== undefined) return chain;
  throw new ConfigurationError([{ name: "network", problem: notRunning(network, chains) }]);
}

/** Returns the chain and token that a body names, and the amount in the token's smallest unit. */
function readTokens(
  harness: ControlledHarness,
  body: z.infer<z.ZodObject<typeof onNetwork & typeof tokens>>,
) {
  const chain = runningChain(harness, body.network);
  const token = tokenNamed(chain, body.asset);
  return { chain, token, count: toUnits(jsonAmount(body.amount, body.units), token) };
}

function kept(journal: JournalStore | undefined): JournalStore {
  if (journal !== undefined) return journal;
  throw noJournal();
}
