import { z } from "zod";
import { forTimes } from "../../methods/payment-times.ts";
import { orderRoute, termMembers } from "../../payer/payment-order.ts";
import { usual } from "../../payer/terms.ts";
import { type TestPayerName, testPayers } from "../../payer/test-payers.ts";
import { bytes32, strictMembers } from "../../protocol/primitives.ts";
import { describeRoutes, type LocalRoute } from "../../service/http/local-server.ts";

/** The bodies of the routes. */
const { amount, asset, units } = termMembers;
const needed = { amount: amount.unwrap(), units, asset };
export const fundRequest = strictMembers({ network: z.string(), to: z.string(), ...needed });
export const approveRequest = strictMembers({ network: z.string(), account: z.string(), ...needed });
export const advanceTimeRequest = strictMembers({ network: z.string(), seconds: z.number() });
export const mineRequest = strictMembers({ network: z.string(), blocks: z.number() });
export const journalRequest = strictMembers({ id: bytes32 });
export const idRequest = strictMembers({ id: z.string() });
export const emptyRequest = strictMembers({});

const time = z
  .string()
  .regex(/^(\d{1,15}|now([+-]\d{1,13})?)$/, 'is neither unix seconds nor as "now-60" or "now+600"');

const { scheme: _, resource: __, ...terms } = termMembers;

/** The body of `POST /harness/pay`, with a test payer by its name. */
export const payRequest = strictMembers({
  ...terms,
  network: z.string(),
  payer: z.enum(Object.keys(testPayers) as [TestPayerName, ...TestPayerName[]]).default(usual.payer),
  /** By Permit2: whether an approval is sent along (EIP-2612), or as a transaction of the payer's. */
  approval: z.union([z.boolean(), z.literal("transaction")]).optional(),
  /** Unix seconds, or `now-60` and `now+600`: from the chain's time. When it ends goes before `validForSeconds`. */
  ...forTimes(() => time.optional()),
});

/** The routes of a harness that programs in other languages call. */
const controlApi = {
  "GET /harness": {
    id: "describeHarness",
    summary: "What runs here, and with which keys",
    answer: "All of it",
  },
  "GET /harness/chains": {
    id: "listChains",
    summary: "How the chains stand: block, time, balances",
    answer: "Each chain",
  },
  "POST /__payment": orderRoute,
  "POST /harness/fund": {
    id: "fund",
    summary: "Gives an account some of the token",
    body: fundRequest,
    answer: "The added amount",
  },
  "POST /harness/approve": {
    id: "approve",
    summary: "Lets Permit2 take tokens of an account",
    body: approveRequest,
    answer: "How much it may take",
  },
  "POST /harness/pay": {
    id: "pay",
    summary: "Signs a payment, verifies and settles it",
    body: payRequest,
    answer: "Both answers",
  },
  "POST /harness/advance-time": {
    id: "advanceTime",
    summary: "Moves the time of a chain forward",
    body: advanceTimeRequest,
    answer: "The chain's time after that",
  },
  "POST /harness/mine": { id: "mine", summary: "Mines blocks", body: mineRequest, answer: "How many" },
  "POST /harness/reset": { id: "reset", summary: "Puts everything back to its start", answer: "It is done" },
  "POST /harness/state": {
    id: "saveState",
    summary: "Gives the whole session: chains, ledger, story, faults and settings",
    answer: "The content of a file for `up --state`, which packs it with gzip",
  },
  "POST /harness/snapshot": { id: "snapshot", summary: "Remembers everything as it is", answer: "Its id" },
  "POST /harness/restore": {
    id: "restore",
    summary: "Puts everything back to a snapshot",
    body: idRequest,
    answer: "It is done",
  },
  "GET /harness/faults/kinds": { id: "listFaultKinds", summary: "The faults there are", answer: "Each kind" },
  "POST /harness/faults/add": {
    id: "addFault",
    summary: "Makes the RPC or a chain fail",
    body: z.object({}),
    answer: "The fault, with its id",
  },
  "POST /harness/faults/list": { id: "listFaults", summary: "The faults in effect", answer: "Each of them" },
  "POST /harness/faults/remove": {
    id: "removeFault",
    summary: "Ends a fault",
    body: idRequest,
    answer: "Whether there was one",
  },
  "POST /harness/faults/clear": { id: "clearFaults", summary: "Ends all faults", answer: "It is done" },
} as const satisfies Readonly<Record<string, LocalRoute>>;

/** The routes of {@link controlRoutes} in an OpenAPI document. */
export const describeControlApi = () => describeRoutes(controlApi);
