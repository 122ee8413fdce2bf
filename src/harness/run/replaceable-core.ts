// Imported instead of global, so that a test's fake timers do not keep its harness from being reset.
import { clearTimeout, setTimeout } from "node:timers";
import { setTimeout as sleep } from "node:timers/promises";
import type { Rows } from "../../ledger/database/sqlite/memory-databases.ts";
import { type Hex, keccak256Text } from "../../protocol/hex.ts";
import type { ServiceCore } from "../../service/service.ts";
import { createSerialQueue } from "../../util/concurrency.ts";
import { KitError } from "../../util/errors.ts";
import type { HarnessChain } from "../setup/prepare-chain.ts";
import type { MinedCounts } from "../setup/starting-point.ts";
import type { Rewindable } from "./running-harness.ts";
import type { Session } from "./session.ts";

/** A part of a harness besides chains and service, such as the proxies in front of the nodes. */
export type HarnessPart = {
  /** Called before the service is replaced. Must end everything that delays its answers. */
  beforeReset?(): void | Promise<void>;
  /** Called after chains and service were reset or restored. */
  afterReset?(): void | Promise<void>;
  /** Called before the nodes are stopped. */
  close?(): void | Promise<void>;
};

/** A service core that can be replaced while its callers keep the same objects. */
export type ReplaceableCore = Omit<ServiceCore, "start" | "drain"> & {
  /** Starts the first core. Throws like {@link ServiceCore.start}. */
  start(mined?: Mined): Promise<void>;
  /**
   * Stops the core, which answers requests in flight, runs `meanwhile`, and starts a new core. Until then callers get the
   * answer that the service is shutting down.
   *
   * @param meanwhile restores the chains; returns their transaction counts for the new core
   * @param rows the database rows of the new core, instead of its initial ones
   */
  replace(meanwhile: () => Promise<Mined>, rows?: Rows): Promise<void>;
  /** Returns the rows of the core's database. */
  readRows(): Promise<Rows>;
};

type StartOptions = { inspect: boolean; mined?: Mined; rows?: Rows | undefined };

/** Returns how many transactions of an account a network has mined, if known. */
type Mined = NonNullable<Parameters<ServiceCore["start"]>[0]>["mined"];

/** A core with its own database. */
export type MadeCore = Omit<ServiceCore, "start"> & {
  start(options: StartOptions): Promise<void>;
  readRows(): Promise<Rows>;
};

/** How long a core may take to stop on its own. If the nodes answer, it takes only milliseconds. */
const timeoutMs = 500;

/** When to create a spare core for the next reset: not immediately, because that would slow down the first payments. */
const spareAfterMs = 25;

/**
 * Creates a core that a reset replaces instead of clearing. So production code needs no way to forget, and the new ledger,
 * queues and caches are certainly empty.
 *
 * @param make creates a core that is not started yet
 */
export async function createReplaceableCore(make: () => Promise<MadeCore>): Promise<ReplaceableCore> {
  let current = await make();
  let spare: Promise<MadeCore> | undefined;
  let timer: NodeJS.Timeout | undefined;

  async function startNew(made: Promise<MadeCore>, options: StartOptions): Promise<MadeCore> {
    const core = await made;
    try {
      await core.start(options);
      return core;
    } catch (error) {
      await core.stop();
      await core.close();
      throw error;
    }
  }

  function prepareSpare(): void {
    timer = setTimeout(makeSpare, spareAfterMs).unref();
  }

  function makeSpare(): void {
    if (spare !== undefined) return;
    spare = make();
    // An error is reported when the spare is taken.
    spare.catch(() => {});
  }

  function takeSpare(): Promise<MadeCore> {
    const taken = spare ?? make();
    spare = undefined;
    return taken;
  }

  /** Returns a proxy that forwards each call to the part of the current core. */
  function forward<T extends object>(part: (core: MadeCore) => T): T {
    return new Proxy(part(current), { get: (_, name) => Reflect.get(part(current), name) });
  }

  return {
    facilitator: forward(({ facilitator }) => facilitator),
    organizations: forward(({ organizations }) => organizations),
    channels: forward(({ channels }) => channels),
    catalog: current.catalog && {
      note: (...seen) => current.catalog?.note(...seen),
      read: async (organizationId) => (await current.catalog?.read(organizationId)) ?? [],
      settled: async () => current.catalog?.settled(),
    },
    checkHealth: () => current.checkHealth(),
    async start(mined) {
      await current.start({ inspect: true, mined });
      prepareSpare();
    },
    stop: () => current.stop(),
    settled: () => current.settled(),
    readRows: () => current.readRows(),
    async close() {
      clearTimeout(timer);
      await current.close();
      const unused = await spare?.catch(() => undefined);
      await unused?.stop();
      await unused?.close();
    },
    async replace(meanwhile, rows) {
      const old = current;
      const stopped = old.stop();
      const late = sleep(timeoutMs, "late", { ref: false });
      const isLate = (await Promise.race([stopped, late])) === "late";
      clearTimeout(timer);
      // Restoring the chains leaves time for it.
      makeSpare();
      // Work that waits for an unresponsive node ends when the connections are closed. Do that before the chains are restored,
      // or it could still send to them.
      if (isLate) await Promise.all([stopped, old.close()]);
      const mined = await meanwhile();
      const ended = isLate ? undefined : old.close();
      ended?.catch(() => {});
      // No inspection: the chains are as they were when the first core inspected them.
      current = await startNew(takeSpare(), { inspect: false, mined, rows });
      prepareSpare();
      await ended;
    },
  };
}

/** Saves and restores chains and ledger. Runs one call at a time; the others wait. */
export type Rewind = Rewindable & {
  /** Returns a consistent copy of the current chains and ledger. */
  save(): Promise<Pick<Session, "chains" | "rows">>;
  /** Resolves when all earlier calls are done. */
  settled(): Promise<void>;
};

/** @param seed the authorization nonces are derived from it; without one, any nonces will do */
export function createRewind(options: {
  chains: readonly HarnessChain[];
  core: ReplaceableCore;
  parts: readonly HarnessPart[];
  seed: number | undefined;
}): Rewind {
  const { chains, core, parts, seed } = options;
  const inTurn = createSerialQueue();
  const snapshots = new Map<number, () => Promise<void>>();
  let lastSnapshot = 0;
  let authorizations = 0;

  async function putBack(chainsBack: readonly (() => Promise<MinedCounts>)[], rows?: Rows): Promise<void> {
    for (const part of parts) await part.beforeReset?.();
    await core.replace(async () => {
      // Wait for all of them even if one fails, so that the next restore cannot overlap with this one.
      const results = await Promise.allSettled(chainsBack.map((back) => back()));
      const counts = results.map((result) => {
        if (result.status === "rejected") throw result.reason;
        return result.value;
      });
      const byNetwork = new Map(chains.map(({ network }, index) => [network.name, counts[index]]));
      return (network, account) => byNetwork.get(network)?.get(account);
    }, rows);
    for (const part of parts) await part.afterReset?.();
  }

  async function takeSnapshot(): Promise<string> {
    const id = ++lastSnapshot;
    const nonces = authorizations;
    const marks = await Promise.all(chains.map((chain) => chain.mark()));
    const rows = await core.readRows();
    snapshots.set(id, async () => {
      for (const later of snapshots.keys()) if (later > id) snapshots.delete(later);
      const restores = marks.map(({ restore }) => restore);
      await putBack(restores, rows);
      authorizations = nonces;
    });
    return `${id}`;
  }

  return {
    nextAuthorizationNonce(): Hex | undefined {
      if (seed === undefined) return undefined;
      return keccak256Text(`x402-facilitator-kit authorization: ${seed}, ${authorizations++}`);
    },
    snapshot: () => inTurn(takeSnapshot),
    restore: (id) =>
      inTurn(async () => {
        const restore = snapshots.get(Number(id));
        if (restore !== undefined) return restore();
        throw new KitError("The snapshot is gone", {
          hints: ["It was taken before a reset, or after an earlier one was restored."],
        });
      }),
    reset: () =>
      inTurn(async () => {
        snapshots.clear();
        await putBack(chains.map((chain) => chain.reset));
        authorizations = 0;
      }),
    save: () =>
      inTurn(async () => {
        // Hold mining, so that everything the ledger knows as settled is on the saved chains.
        const held: HarnessChain[] = [];
        try {
          for (const chain of chains) {
            if (!(await chain.isMining())) continue;
            held.push(chain);
            await chain.hold();
          }
          const saving = chains.map(async (chain) => [chain.network.name, await chain.save()] as const);
          const saved = Object.fromEntries(await Promise.all(saving));
          return { chains: saved, rows: await core.readRows() };
        } finally {
          await Promise.all(held.map((chain) => chain.release()));
        }
      }),
    settled: () => inTurn(async () => {}),
  };
}
