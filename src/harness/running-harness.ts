import type { FastifyInstance } from "fastify";
import type { KitError } from "../errors.ts";
import type { Organizations } from "../organizations/organizations.ts";
import type { Hex } from "../protocol/hex.ts";
import type { HarnessDescription } from "./control/description.ts";
import type { FaultBoard } from "./faults/fault-board.ts";
import type { ForkFailures } from "./fork/fork-source.ts";
import type { JournalStore } from "./journal/journal.ts";
import type { Chains } from "./stage/chains.ts";

/** Something beside chains and service that takes part in a harness, such as a proxy before the nodes. */
export type HarnessPart = {
  /** Before the service is replaced: what keeps answers from it must go. */
  beforeReset?(): void | Promise<void>;
  /** When chains and service are as new. */
  afterReset?(): void | Promise<void>;
  /** Before the nodes end. */
  close?(): void | Promise<void>;
};

/** Local chains and the service running against them. Disposing of them ends them. */
export type RunningHarness = AsyncDisposable & {
  readonly description: HarnessDescription;
  readonly chains: Chains["chains"];
  readonly app: FastifyInstance;
  readonly organizations: Organizations;
  /** The pids of everything that was started. */
  readonly pids: readonly number[];
  /** Calls the listener when a node dies that was not asked to. */
  onFailure(listener: (error: KitError) => void): void;
  /** The next authorization nonce that follows from the seed; undefined without a seed, when any will do. */
  nextAuthorizationNonce(): Hex | undefined;
  /** Trouble between the service and the nodes, and on the chains. */
  readonly faults: FaultBoard;
  /** What the service did; undefined where no journal is kept. */
  readonly journal: JournalStore | undefined;
  /** How often each forked chain could not ask its network, and why it last could not. */
  forkFailures(): readonly ForkFailures[];
  /** Puts chains and service back to where they were when they were started. */
  reset(): Promise<void>;
  /** Ends the service and the chains, and leaves nothing behind. Can be called again. */
  close(): Promise<void>;
};
