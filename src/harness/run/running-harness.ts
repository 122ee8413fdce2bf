import type { FastifyInstance } from "fastify";
import type { Timeline } from "../../observe/timeline/timeline.ts";
import type { Organizations } from "../../service/organizations/organizations.ts";
import type { KitError } from "../../util/errors.ts";
import type { ControlledHarness } from "../control/controlled-harness.ts";
import type { HarnessDescription } from "../control/description.ts";

/** A part of a harness besides chains and service, such as the proxies before the nodes. */
export type HarnessPart = {
  /** Called before the service is replaced. What delays its answers must end. */
  beforeReset?(): void | Promise<void>;
  /** Called when chains and service are as new. */
  afterReset?(): void | Promise<void>;
  /** Called before the nodes end. */
  close?(): void | Promise<void>;
};

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
