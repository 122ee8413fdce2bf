import type { FastifyInstance } from "fastify";
import type { Logger } from "pino";
import type { LocalOrganization } from "../../config/organization-file.ts";
import type { Timeline } from "../../observe/timeline/timeline.ts";
import type { ClaimedKind } from "../../protocol/answers.ts";
import type { Address } from "../../protocol/hex.ts";
import type { CorsOrigins } from "../../protocol/routes.ts";
import type { PayToPolicy } from "../../protocol/signed-payment.ts";
import type { Organizations } from "../../service/organizations/organizations.ts";
import type { KitError } from "../../util/errors.ts";
import type { ControlledHarness } from "../control/controlled-harness.ts";
import type { HarnessDescription } from "../control/description.ts";
import type { StartChainsOptions } from "../setup/chains.ts";
import type { SavedHarness } from "./replaceable-core.ts";

/** Local chains and the service running against them. Disposing of them ends them. */
export type RunningHarness = AsyncDisposable &
  ControlledHarness & {
    readonly description: HarnessDescription;
    readonly app: FastifyInstance;
    readonly organizations: Organizations;
    /** What became of payments; undefined without journal and studio. */
    readonly timeline: Timeline | undefined;
    /** Whether the chains have another time than this machine: with a seed, or since their time was moved. */
    hasOwnClock(): boolean;
    /** The pids of everything that was started. */
    readonly pids: readonly number[];
    /** Calls the listener when a node ends without having been asked to. */
    onFailure(listener: (error: KitError) => void): void;
    /** Ends the service and the chains, and leaves nothing behind. Can be called again. */
    close(): Promise<void>;
  };

/** A control request that was done, with its body as it came. */
export type ControlAction = { path: string; body: unknown };

/** How chains and service are started. */
export type StartOptions = Omit<StartChainsOptions, "genesisTime" | "saved" | "meanwhile"> & {
  host: string;
  /** 0 for any free port. */
  port: number;
  settleWaitMs?: number | undefined;
  /** Where the local organization is paid; at a published account by default. */
  recipient?: Address | undefined;
  /** Where payments may go; to the facilitator contract alone by default. */
  payTo?: PayToPolicy | undefined;
  /** Organizations besides the local one and those of the published keys. */
  organizations?: readonly LocalOrganization[] | undefined;
  /** What chains and ledger go on with, and what is done with theirs when this ends as it was asked to. */
  state?: { saved: SavedHarness | undefined; save(state: SavedHarness): void | Promise<void> } | undefined;
  logger: Logger;
  /** Whether direct submissions are paid out, as in production with a recoverer's key; they are by default. */
  recovery?: boolean;
  /** Whether a journal is kept of what the service does, which costs it some time; not by default. */
  journal?: boolean;
  /** Is told of each control request that was done: see `control.ts`. */
  onAction?: ((action: ControlAction) => void) | undefined;
  /** Whether the studio is served: `/studio`, `/payments` and `/events`; not by default. */
  studio?: boolean;
  /** The origins of web pages that may call the facilitator; none by default. */
  corsOrigins?: CorsOrigins | undefined;
  /** Whether it is kept, and shown, what organizations were paid for; not by default. */
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
