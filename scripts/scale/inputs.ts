import { readFileSync } from "node:fs";

/*
 * The inputs of the model and the simulation, each with its source; docs/scale.md says which were measured and which
 * were looked up.
 */

/** Unmined transactions of one key, and payments in one transaction: `createRelayer`. */
export const maxUnmined = 16;
export const maxBatch = 50;

/** CPU of the service for one payment, ms, once warm: docs/decisions/0026-many-settles-at-once.md (1.0 to 1.3). */
export const cpuMs = 1.15;
/** Of which before its claim: recovering the signature, checks, simulation. A guess; it moves no rate. */
export const cpuShareBefore = 0.6;

/** The ledger's time for a transaction of fifty, ms: `node scripts/scale/measure.ts`. */
export const databases = {
  sqlite: { claimMs: 10, concludeMs: 7.4, atOnce: 1 },
  // Claims and conclusions of one key go one after the other, those of different keys side by side.
  postgres: { claimMs: 28.7, concludeMs: 11.8, atOnce: 8 },
} as const;
export type DatabaseCosts = { claimMs: number; concludeMs: number; atOnce: number };

/**
 * A local node that mines each transaction at once, ms: 2.7 to 7.9 for a block and 0.27 for each payment in one (50 in a
 * transaction, 3,700 a second by themselves), and half a millisecond for the two calls that check one.
 */
export const localNode = { mineMs: 4, paymentMs: 0.27, checkMs: 0.5 };

/** A request to a node elsewhere, ms. An assumption: providers answer in 20 to 80 ms. */
export const requestMs = 50;

/**
 * Gas of blocks, and their time. Looked up at the end of 2025, and assumed for testnets: such limits change every few
 * months. Ask the chain: `cast block latest --field gasLimit`.
 */
export const chains = {
  base: { blockMs: 2_000, blockGas: 150_000_000, confirmations: 2 },
  "base-sepolia": { blockMs: 2_000, blockGas: 150_000_000, confirmations: 1 },
  optimism: { blockMs: 2_000, blockGas: 40_000_000, confirmations: 2 },
  "optimism-sepolia": { blockMs: 2_000, blockGas: 40_000_000, confirmations: 1 },
  polygon: { blockMs: 2_000, blockGas: 45_000_000, confirmations: 8 },
} as const;

const gas: unknown = JSON.parse(
  readFileSync(new URL("../../contracts/test/snapshots/gas.json", import.meta.url), "utf8"),
);

function gasOf(count: number, recipients: "one recipient" | "distinct recipients"): number {
  const name = `settleBatch, ${count} payments, ${recipients}, per payment`;
  const value = Number(Object(gas)[name]);
  if (!(value > 0)) throw new Error(`contracts/test/snapshots/gas.json has no "${name}"`);
  return value;
}

/** Gas of a transaction with so many payments: a line through the measured 25 and 100, which are a part for each payment and one for all. */
export function batchGas(payments: number, recipients: "one recipient" | "distinct recipients"): number {
  const [of25, of100] = [gasOf(25, recipients), gasOf(100, recipients)];
  const shared = (of25 - of100) / (1 / 25 - 1 / 100);
  return payments * (of100 - shared / 100) + shared;
}
