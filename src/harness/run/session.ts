import { z } from "zod";
import { settleWaitBoundsMs } from "../../config/serve-config.ts";
import type { Rows } from "../../ledger/database/sqlite/memory-databases.ts";
import { mostTold, paymentDetailSchema } from "../../observe/timeline/payment-view.ts";
import { harnessAccounts } from "../../payer/accounts.ts";
import { localGasMoney } from "../../payer/local-chains.ts";
import { dialects } from "../../protocol/catalogue.ts";
import { address } from "../../protocol/primitives.ts";
import { payToPolicies } from "../../protocol/signed-payment.ts";
import { strictnesses } from "../../protocol/strictness.ts";
import { isObject } from "../../util/json.ts";
import { type FaultBoard, readFaultReport } from "../faults/faults.ts";
import type { HarnessChain } from "../setup/prepare-chain.ts";

/** The most faults, organizations or networks of a session. */
const mostListed = 1_000;

/** A list that is counted before its items are read. */
const few = <T extends z.ZodType>(item: T, most: number) =>
  z.array(z.unknown()).max(most).pipe(z.array(item));

/** The same of members by their names. */
const fewNamed = <T extends z.ZodType>(item: T) =>
  z
    .custom<object>((value) => isObject(value) && Object.keys(value).length <= mostListed)
    .pipe(z.record(z.string(), item));

const asset = z.object({
  address,
  name: z.string(),
  version: z.string(),
  decimals: z.int().min(0).max(77),
  symbol: z.string().optional(),
  transfers: z.array(z.string()).readonly().optional(),
});

/** The options of an `up` that decide its answers, as JSON. */
const settingsSchema = z.object({
  networks: few(z.string(), mostListed).readonly(),
  /** Networks besides the five, as a network file has them. */
  added: z.array(z.unknown()).max(mostListed),
  facilitatorContracts: z.object({ mainnet: address, testnet: address }),
  assets: fewNamed(asset),
  recipient: address.optional(),
  payTo: z.enum(payToPolicies),
  strictness: z.enum(strictnesses),
  /** Earlier versions had those of the specification alone. */
  reasons: z.enum(dialects).default("spec"),
  /** As a file of organizations has them; their keys are published, and follow from their ids. */
  organizations: z.array(z.unknown()).max(mostListed),
  settleWaitMs: z.int().min(settleWaitBoundsMs.least).max(settleWaitBoundsMs.most).optional(),
  recovery: z.boolean(),
  discovery: z.boolean(),
  claims: few(
    z.object({ x402Version: z.literal([1, 2]), scheme: z.string(), network: z.string() }),
    mostListed,
  ),
  open: z.boolean(),
});

export type SessionSettings = z.infer<typeof settingsSchema>;

/** Checked in a way that ends at the first wrong value: a library would say what is wrong with each of millions. */
const rowsSchema = z.custom<Rows>(
  (tables) =>
    isObject(tables) && Object.values(tables).every((rows) => Array.isArray(rows) && rows.every(isRow)),
);

const isRow = (row: unknown) => isObject(row) && Object.values(row).every(isColumn);

const isColumn = (value: unknown) => value === null || typeof value === "string" || typeof value === "number";

/**
 * All that a harness has done: what `state save` writes to a file, and `up --state` goes on from. It holds no key but
 * published ones, which follow from the ids of organizations and are not in it either. Files of earlier versions have chains
 * and rows alone.
 */
export const sessionSchema = z.object({
  version: z.literal(1),
  /** By network, where contract and token stand. */
  setting: fewNamed(z.string()),
  chains: fewNamed(z.object({ state: z.string(), ahead: z.int().nonnegative() })),
  /** The service's database. */
  rows: rowsSchema,
  settings: settingsSchema.optional(),
  /** The newest payments, as `GET /payments/{id}` describes them, the newest first. */
  story: few(paymentDetailSchema, mostTold).default([]),
  /** Faults as they are reported. */
  faults: few(z.looseObject({ kind: z.string() }), mostListed).default([]),
});

export type Session = z.infer<typeof sessionSchema>;

/**
 * Sets the faults of a session again, save those that have hit as often as they were to.
 *
 * @throws {ConfigurationError} for what is none
 */
export async function setFaultsAgain(
  board: FaultBoard,
  faults: Session["faults"],
  chains: Readonly<Record<string, HarnessChain>>,
): Promise<void> {
  for (const { id: _, fired, usedUp, ...spec } of faults.map(readFaultReport)) {
    if (usedUp) continue;
    // Removed, it is to give back what the operator had before.
    if (spec.kind === "empty-operator") {
      await chains[spec.network]?.setBalance(harnessAccounts.operator.address, localGasMoney);
    }
    const times = "times" in spec ? spec.times : undefined;
    // One that has hit has found its first match.
    const rest = fired > 0 && times !== undefined ? { nth: 1, times: times - fired } : {};
    await board.add({ ...spec, ...rest });
  }
}
