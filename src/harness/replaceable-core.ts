import { setTimeout } from "node:timers/promises";
import type { ServiceCore } from "../service.ts";

/** A service core that can be thrown away and replaced, while whoever holds its parts goes on calling them. */
export type ReplaceableCore = Pick<
  ServiceCore,
  "facilitator" | "organizations" | "checkHealth" | "stop" | "close"
> & {
  /**
   * Ends the core, answering whoever waits, and puts a new one in its place after `meanwhile`. Until then callers are
   * told that the service is shutting down.
   */
  replace(meanwhile: () => Promise<void>): Promise<void>;
};

/** How long what a core has under way may take to end by itself. With nodes that answer it takes milliseconds. */
const patienceMs = 500;

/**
 * Forgetting everything by beginning anew: production code needs no way to forget, and a ledger, queues and
 * caches that are new cannot remember.
 *
 * @param make gives a core that has been started
 */
export async function createReplaceableCore(make: () => Promise<ServiceCore>): Promise<ReplaceableCore> {
  let current = await make();

  /** Calls go to the part of the core that is current when they are made. */
  function forward<T extends object>(part: (core: ServiceCore) => T): T {
    return new Proxy(part(current), { get: (_, name) => Reflect.get(part(current), name) });
  }

  return {
    facilitator: forward(({ facilitator }) => facilitator),
    organizations: forward(({ organizations }) => organizations),
    checkHealth: () => current.checkHealth(),
    stop: () => current.stop(),
    close: () => current.close(),
    async replace(meanwhile) {
      const old = current;
      const stopped = old.stop();
      await Promise.race([stopped, setTimeout(patienceMs, undefined, { ref: false })]);
      await meanwhile();
      current = await make();
      // What hangs on a node that does not answer ends with its connections.
      await Promise.all([stopped, old.close()]);
    },
  };
}
