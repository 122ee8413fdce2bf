import type { FastifyInstance, RouteHandlerMethod } from "fastify";
import type { Logger } from "pino";
import type { LocalOrganization } from "../../config/organization-file.ts";
import type { RefusalContext } from "../../observe/explain/explanations.ts";
import type { Timeline } from "../../observe/timeline/timeline.ts";
import type { ClaimedKind } from "../../protocol/answers.ts";
import type { Dialect } from "../../protocol/catalogue.ts";
import { type Address, type Hex, readAddress } from "../../protocol/hex.ts";
import type { CorsOrigins } from "../../protocol/routes.ts";
import type { PayToPolicy } from "../../protocol/signed-payment.ts";
import type { Strictness } from "../../protocol/strictness.ts";
import type { Organizations } from "../../service/organizations/organizations.ts";
import { KitError } from "../../util/errors.ts";
import { aText, requireArgument } from "../../util/given.ts";
import type { HarnessDescription } from "../control/description.ts";
import type { FaultBoard } from "../faults/faults.ts";
import type { JournalStore, PaymentReader } from "../journal/journal.ts";
import type { ForkFailures } from "../nodes/nodes.ts";
import type { Chains, StartChainsOptions } from "../setup/chains.ts";
import type { Session } from "./session.ts";

/** Local chains and the service that runs against them. Disposing of it ends both. */
export type RunningHarness = AsyncDisposable &
  ControlledHarness & {
    readonly app: FastifyInstance;
    readonly organizations: Organizations;
    /** The history of payments; undefined without journal and studio. */
    readonly timeline: Timeline | undefined;
    /** The context needed to explain refusals. */
    readonly context: RefusalContext;
    readonly pids: readonly number[];
    /** Calls the listener if a node exits without having been stopped. */
    onFailure(listener: (error: KitError) => void): void;
    /**
     * Ends the service and the chains, and leaves nothing behind. Can be called again.
     *
     * @throws the error of saving the state, after everything has ended
     */
    close(): Promise<void>;
  };

/** A line about a control action, for the terminal of `up`. */
export type News = { what: string; more: string; isBad?: true };

export type StartOptions = Omit<StartChainsOptions, "genesisTime" | "saved" | "meanwhile"> & {
  host: string;
  /** 0 for any free port. */
  port: number;
  settleWaitMs?: number | undefined;
  /** The local organization's recipient address; a published account by default. */
  recipient?: Address | undefined;
  /** The allowed `payTo` addresses; only the facilitator contract by default. */
  payTo?: PayToPolicy | undefined;
  /** How strict the facilitator is where the specification leaves it open; `spec` by default. */
  strictness?: Strictness | undefined;
  /** The names of its refusal reasons; `spec` by default. */
  reasons?: Dialect | undefined;
  /** Further organizations, besides the local one and those of the published keys. */
  organizations?: readonly LocalOrganization[] | undefined;
  /** The session to continue from, and the function that saves this one when it is closed. */
  state?: { saved: Session | undefined; save(session: Session): void | Promise<void> } | undefined;
  logger: Logger;
  /** True (the default) if direct submissions are paid out, as in production with a recoverer's key. */
  recovery?: boolean;
  /** True if a journal of the service's work is kept, which slows it down a little; false by default. */
  journal?: boolean;
  /** Called with the news of each completed control request. */
  onNews?: ((news: News) => void) | undefined;
  /** True if the studio is served (`/studio`, `/payments` and `/events`); false by default. */
  studio?: boolean;
  /** The origin of a shop, and the port of a recording proxy in front of it (0 for any free one); none by default. */
  shop?: { target: string; port: number } | undefined;
  /** Opens the MCP server for the harness at a URL; called at the first request to `/mcp`. Without it there is no `/mcp`. */
  mcp?: ((url: string) => Promise<RouteHandlerMethod>) | undefined;
  /** The origins of web pages that may call the facilitator; none by default. */
  corsOrigins?: CorsOrigins | undefined;
  /** True if the resources that organizations were paid for are recorded and listed; false by default. */
  discovery?: boolean | undefined;
  /** Kinds that `/supported` lists although their payments are refused; none by default. */
  claims?: readonly ClaimedKind[] | undefined;
  /** Makes runs repeatable: the chains have their own clock, and authorization nonces are derived from the seed. */
  seed?: number | undefined;
  /**
   * Accepts requests without an API key for the local organization, and adds `POST /close`, which calls `onClose` after
   * answering. By default keys are required and there is no such route.
   */
  open?: { onClose(): void } | undefined;
};

/** The parts of a running harness that control needs. */
export type ControlledHarness = Rewindable & {
  /** @throws if the harness is not ready yet */
  readonly description: HarnessDescription;
  readonly chains: Chains["chains"];
  /** Faults between the service and the nodes, and on the chains. */
  readonly faults: FaultBoard;
  /** The journal; undefined if none is kept. */
  readonly journal: JournalStore | undefined;
  /** The outcomes of payments, with explanations. */
  readonly payments: PaymentReader;
  /** Returns how many calls each forked chain could not answer, with the latest reason. */
  forkFailures(): readonly ForkFailures[];
  /**
   * Returns the whole session, for another harness to continue from.
   *
   * @throws {KitError} if the chains are forks, or have a seed
   */
  session(): Promise<Session>;
};

/** Chains and ledger that can be restored to an earlier state. */
export type Rewindable = {
  /** Returns the next authorization nonce derived from the seed; undefined without a seed, when any nonce will do. */
  nextAuthorizationNonce(): Hex | undefined;
  /** Takes a snapshot of chains and ledger. Returns an id for {@link restore}. */
  snapshot(): Promise<string>;
  /** @throws KitError if the snapshot no longer exists */
  restore(id: string): Promise<void>;
  /** Resets chains and service to their start. */
  reset(): Promise<void>;
};

/** @throws KitError if the text is not an address, or has a wrong checksum (EIP-55) */
export function requireAccount(text: string): Address {
  requireArgument("account", text, aText);
  const { address, problem } = readAddress(text);
  if (problem !== undefined) throw new KitError(`The account ${JSON.stringify(text)} ${problem}`);
  return address;
}
