import type { Rows } from "../../ledger/database/sqlite/memory-databases.ts";
import { type Hex, keccak256Text } from "../../protocol/hex.ts";
import { createTurns } from "../../util/concurrency.ts";
import { KitError } from "../../util/errors.ts";
import type { ControlledHarness } from "../control/controlled-harness.ts";
import type { HarnessChain, SavedChain } from "../setup/chain.ts";
import type { MinedCounts } from "../setup/starting-point.ts";
import type { ReplaceableCore } from "./replaceable-core.ts";
import type { HarnessPart } from "./running-harness.ts";

/** A harness that has ended: its chains by name, and the service's database. */
export type SavedHarness = { chains: Readonly<Record<string, SavedChain>>; rows: Rows };

/** Remembers chains and ledger, and puts them back. One call at a time; the others wait. */
export type Rewind = Pick<ControlledHarness, "nextAuthorizationNonce" | "snapshot" | "restore" | "reset"> & {
  /** Chains and ledger as they are now. */
  save(): Promise<SavedHarness>;
  /** Resolves when what was asked for before is over. */
  settled(): Promise<void>;
};

/** @param seed from which the authorization nonces follow; without one, any will do */
export function createRewind(options: {
  chains: readonly HarnessChain[];
  core: ReplaceableCore;
  parts: readonly HarnessPart[];
  seed: number | undefined;
}): Rewind {
  const { chains, core, parts, seed } = options;
  const inTurn = createTurns();
  const snapshots = new Map<number, () => Promise<void>>();
  let lastSnapshot = 0;
  let authorizations = 0;

  async function putBack(chainsBack: readonly (() => Promise<MinedCounts>)[], rows?: Rows): Promise<void> {
    for (const part of parts) await part.beforeReset?.();
    await core.replace(async () => {
      // All of them come to an end, whatever becomes of one: the next one must not meet this one.
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
    async save() {
      const saving = chains.map(async (chain) => [chain.network.name, await chain.save()] as const);
      return { chains: Object.fromEntries(await Promise.all(saving)), rows: await core.readRows() };
    },
    settled: () => inTurn(async () => {}),
  };
}
