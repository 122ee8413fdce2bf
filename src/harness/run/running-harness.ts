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

/** Local chains and the service running against them. Disposing of them ends them. */
export type RunningHarness = AsyncDisposable &
  ControlledHarness & {
    readonly app: FastifyInstance;
    readonly organizations: Organizations;
    /** The outcome of payments; undefined without journal and studio. */
    readonly timeline: Timeline | undefined;
    /** The context that refusals are explained with. */
    readonly context: RefusalContext;
    readonly pids: readonly number[];
    /** Calls the listener when a node ends without having been asked to. */
    onFailure(listener: (error: KitError) => void): void;
    /**
     * Ends the service and the chains, and leaves nothing behind. Can be called again.
     *
     * @throws what saving the state has thrown, once everything has ended
     */
    close(): Promise<void>;
  };

/** A line about an action of another process, for the terminal of `up`. */
export type News = { what: string; more: string; isBad?: true };

export type StartOptions = Omit<StartChainsOptions, "genesisTime" | "saved" | "meanwhile"> & {
  host: string;
  /** 0 for any free port. */
  port: number;
  settleWaitMs?: number | undefined;
  /** Where the local organization is paid; at a published account by default. */
  recipient?: Address | undefined;
  /** Where payments may go; to the facilitator contract alone by default. */
  payTo?: PayToPolicy | undefined;
  /** How strict the facilitator is if the specification does not decide; `spec` by default. */
  strictness?: Strictness | undefined;
  /** Which names its reasons have; `spec` by default. */
  reasons?: Dialect | undefined;
  /** Organizations besides the local one and those of the published keys. */
  organizations?: readonly LocalOrganization[] | undefined;
  /** The session that this one goes on from, and the function that saves this one at a requested end. */
  state?: { saved: Session | undefined; save(session: Session): void | Promise<void> } | undefined;
  logger: Logger;
  /** True if direct submissions are paid out, as in production with a recoverer's key; they are by default. */
  recovery?: boolean;
  /** True if a journal is kept of what the service does, which costs it some time; not by default. */
  journal?: boolean;
  /** Called with the news of each control request that was done. */
  onNews?: ((news: News) => void) | undefined;
  /** True if the studio is served: `/studio`, `/payments` and `/events`; not by default. */
  studio?: boolean;
  /** Opens the MCP server of the harness at a URL, at the first request to `/mcp`; without it there is none. */
  mcp?: ((url: string) => Promise<RouteHandlerMethod>) | undefined;
  /** The origins of web pages that may call the facilitator; none by default. */
  corsOrigins?: CorsOrigins | undefined;
  /** True if it is kept, and shown, what organizations were paid for; not by default. */
  discovery?: boolean | undefined;
  /** Kinds that `/supported` lists although payments of them are refused; none by default. */
  claims?: readonly ClaimedKind[] | undefined;
  /** Makes runs repeatable: the chains have a clock of their own, and authorization nonces follow from the seed. */
  seed?: number | undefined;
  /**
   * Lets requests without an API key act for the local organization, and `POST /close` call `onClose` when it is
   * answered; by default keys are needed, and there is no such route.
   */
  open?: { onClose(): void } | undefined;
};

/** The parts of a running harness that control needs. */
export type ControlledHarness = Rewindable & {
  /** @throws while the harness is not ready yet */
  readonly description: HarnessDescription;
  readonly chains: Chains["chains"];
  /** Trouble between the service and the nodes, and on the chains. */
  readonly faults: FaultBoard;
  /** The journal; undefined if none is kept. */
  readonly journal: JournalStore | undefined;
  /** The outcome of payments, and why. */
  readonly payments: PaymentReader;
  /** How often each forked chain could not ask its network, and why it last could not. */
  forkFailures(): readonly ForkFailures[];
  /**
   * All that has been done here, for another harness to go on from.
   *
   * @throws {KitError} where the chains are forks, or have a seed
   */
  session(): Promise<Session>;
};

/** Chains and ledger that can be put back to an earlier state. */
export type Rewindable = {
  /** The next authorization nonce that follows from the seed; undefined without a seed, when any will do. */
  nextAuthorizationNonce(): Hex | undefined;
  /** Remembers chains and ledger as they are; gives an id for {@link restore}. */
  snapshot(): Promise<string>;
  /** @throws KitError when there is no such snapshot any more */
  restore(id: string): Promise<void>;
  /** Puts chains and service back to where they were when they were started. */
  reset(): Promise<void>;
};

/** @throws KitError when what a person gave as an account is no address, or a mistyped one (EIP-55) */
export function requireAccount(text: string): Address {
  requireArgument("account", text, aText);
  const { address, problem } = readAddress(text);
  if (problem !== undefined) throw new KitError(`The account ${JSON.stringify(text)} ${problem}`);
  return address;
}
