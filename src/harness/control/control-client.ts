import { z } from "zod";
import { type PaymentSummary, paymentSummarySchema } from "../../observe/timeline/payment-view.ts";
import type { LocalTokenName } from "../../payer/local-chains.ts";
import type { Address, Hex } from "../../protocol/hex.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import { bytes32 } from "../../protocol/primitives.ts";
import { ConfigurationError, KitError } from "../../util/errors.ts";
import { requestJson } from "../../util/http-client.ts";
import { mostUnpacked } from "../../util/unpack.ts";
import { type FaultBoard, readFaultReport } from "../faults/faults.ts";
import { otherRequestSchema, paymentJournalSchema } from "../journal/journal.ts";
import { type JournalReader, readerOf } from "../journal/journal-reader.ts";
import type { ControlledHarness } from "../run/running-harness.ts";
import { type Session, sessionSchema } from "../run/session.ts";
import type { HarnessChain } from "../setup/prepare-chain.ts";
import { notRunning } from "./description.ts";

/** The actions on a running harness, from its own process or from another. */
export type HarnessControl = {
  /** Gives an account some of the network's asset, or of another token. */
  fund(network: NetworkName, to: Address, amount: bigint, asset?: LocalTokenName): Promise<void>;
  /** Has an account let Permit2 take so much of its tokens. */
  approve(network: NetworkName, account: Address, amount: bigint, asset?: LocalTokenName): Promise<void>;
  mine(network: NetworkName, blocks: number): Promise<void>;
  /** Gives the chain's new time, in unix seconds. */
  advanceTime(network: NetworkName, seconds: number): Promise<bigint>;
  /** The next authorization nonce that follows from the seed; undefined without a seed. */
  nextAuthorizationNonce(): Promise<Hex | undefined>;
  readonly faults: FaultBoard;
  readonly journal: JournalReader;
  /** The outcome of each payment, newest first. */
  payments(): Promise<readonly PaymentSummary[]>;
  /** How often each forked chain could not ask its network, and why it last could not. */
  forkFailures(): Promise<readonly { count: number; latest?: ForkFailure | undefined }[]>;
  /** Gives an id for {@link restore}. */
  snapshot(): Promise<string>;
  restore(id: string): Promise<void>;
  reset(): Promise<void>;
  /** All that has been done there, for another harness to go on from. */
  session(): Promise<Session>;
};

/** The failure, and what to do. */
export type ForkFailure = { message: string; hints: readonly string[] };

/** @throws ConfigurationError when the harness runs without the network */
export function runningChain({ chains }: ControlledHarness, network: NetworkName): HarnessChain {
  const chain = chains[network];
  if (chain !== undefined) return chain;
  throw new ConfigurationError([{ name: "network", problem: notRunning(network, chains) }]);
}

/** Control of a harness of this process. */
export function controlOf(harness: ControlledHarness): HarnessControl {
  const { faults, reset, snapshot, restore, nextAuthorizationNonce, session } = harness;
  const chainOf = (network: NetworkName) => runningChain(harness, network);
  return {
    fund: (network, to, amount, asset) => chainOf(network).fund(to, amount, asset),
    approve: (network, account, amount, asset) => chainOf(network).approvePermit2(account, amount, asset),
    mine: (network, blocks) => chainOf(network).mine(blocks),
    advanceTime: (network, seconds) => chainOf(network).advanceTime(seconds),
    nextAuthorizationNonce: async () => nextAuthorizationNonce(),
    faults,
    journal: readerOf(harness.journal, harness.payments),
    payments: () => harness.payments.list(),
    forkFailures: async () => harness.forkFailures(),
    snapshot,
    restore,
    reset,
    session,
  };
}

const refusalSchema = z.object({
  error: z.string(),
  because: z.array(z.string()).default([]),
  hints: z.array(z.string()).default([]),
});
const advancedSchema = z.object({ now: z.int() });
const faultsSchema = z.object({ faults: z.array(z.unknown()) });
const foundSchema = z.object({ payment: paymentJournalSchema.nullable() });
const paymentsSchema = z.object({ payments: z.array(bytes32) });
const otherRequestsSchema = z.object({ requests: z.array(otherRequestSchema) });
const summariesSchema = z.object({ payments: z.array(paymentSummarySchema) });
const removedSchema = z.object({ removed: z.boolean() });
const failureSchema = z.object({ message: z.string(), hints: z.array(z.string()) });
const failuresSchema = z.array(z.object({ count: z.int(), latest: failureSchema.optional() }));
const snapshotSchema = z.object({ id: z.string() });
const nonceSchema = z.object({ nonce: bytes32.nullable() });

/**
 * Control of a harness of another process, over its routes `/harness/…`.
 *
 * @param origin such as `http://127.0.0.1:4402`
 * @throws {KitError} from every method, when the harness refuses or is gone
 */
export function createControlClient(origin: string): HarnessControl {
  async function post(action: string, body: object): Promise<unknown> {
    const url = `${origin}/harness/${action}`;
    const { status, body: answer } = await requestJson(url, {
      method: "POST",
      body,
      maxBytes: mostUnpacked,
    });
    if (status === 200) return answer;
    const { data } = refusalSchema.safeParse(answer);
    throw new KitError(data?.error ?? `The harness at ${origin} refused ${action}: status ${status}`, {
      cause: data?.because.reduceRight<Error | undefined>(
        (cause, message) => new Error(message, { cause }),
        undefined,
      ),
      hints: data?.hints ?? [],
    });
  }

  const act = async (action: string, body = {}) => void (await post(action, body));
  const ask = async <T>(action: string, answer: z.ZodType<T>, body = {}): Promise<T> =>
    answer.parse(await post(action, body));

  return {
    fund: (network, to, amount, asset) =>
      act("fund", { network, to, amount: `${amount}`, units: true, asset }),
    approve: (network, account, amount, asset) =>
      act("approve", { network, account, amount: `${amount}`, units: true, asset }),
    mine: (network, blocks) => act("mine", { network, blocks }),
    advanceTime: async (network, seconds) =>
      BigInt((await ask("advance-time", advancedSchema, { network, seconds })).now),
    nextAuthorizationNonce: async () => (await ask("authorization-nonce", nonceSchema)).nonce ?? undefined,
    faults: {
      add: async (spec) => readFaultReport(await post("faults/add", Object(spec))),
      list: async () => (await ask("faults/list", faultsSchema)).faults.map(readFaultReport),
      remove: async (id) => (await ask("faults/remove", removedSchema, { id })).removed,
      clear: () => act("faults/clear"),
    },
    journal: {
      payment: async (id) => (await ask("journal/payment", foundSchema, { id })).payment ?? undefined,
      payments: async () => (await ask("journal/payments", paymentsSchema)).payments,
      otherRequests: async () => (await ask("journal/other-requests", otherRequestsSchema)).requests,
    },
    payments: async () => (await ask("payments", summariesSchema)).payments,
    forkFailures: () => ask("fork-failures", failuresSchema),
    snapshot: async () => (await ask("snapshot", snapshotSchema)).id,
    restore: (id) => act("restore", { id }),
    reset: () => act("reset"),
    session: () => ask("state", sessionSchema),
  };
}
