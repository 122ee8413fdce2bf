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

/** The maximum number of faults, organizations or networks in a session. */
const mostListed = 1_000;

/** A list whose length is checked before its items are parsed. */
const few = <T extends z.ZodType>(item: T, most: number) =>
  z.array(z.unknown()).max(most).pipe(z.array(item));

/** A record whose size is checked before its values are parsed. */
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

/** The options of an `up` that affect its answers, as JSON. */
const settingsSchema = z.object({
  networks: few(z.string(), mostListed).readonly(),
  /** Networks besides the five built-in ones, in the format of a network file. */
  added: z.array(z.unknown()).max(mostListed),
  facilitatorContracts: z.object({ mainnet: address, testnet: address }),
  assets: fewNamed(asset),
  recipient: address.optional(),
  payTo: z.enum(payToPolicies),
  strictness: z.enum(strictnesses),
  /** Earlier versions only had the specification's reasons. */
  reasons: z.enum(dialects).default("spec"),
  /** In the format of an organization file. Their API keys are published and derived from their ids. */
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

/** Checked by hand, to stop at the first invalid value: zod would report each of possibly millions. */
const rowsSchema = z.custom<Rows>(
  (tables) =>
    isObject(tables) && Object.values(tables).every((rows) => Array.isArray(rows) && rows.every(isRow)),
);

const isRow = (row: unknown) => isObject(row) && Object.values(row).every(isColumn);

const isColumn = (value: unknown) => value === null || typeof value === "string" || typeof value === "number";

/**
 * The whole session of a harness: `state save` writes it to a file, and `up --state` continues from it. It contains no API
 * keys: all are published and derived from the organizations' ids. Files of earlier versions only have chains and rows.
 */
export const sessionSchema = z.object({
  version: z.literal(1),
  /** The addresses of contract and token, by network. */
  setting: fewNamed(z.string()),
  chains: fewNamed(z.object({ state: z.string(), ahead: z.int().nonnegative() })),
  /** The rows of the service's database. */
  rows: rowsSchema,
  settings: settingsSchema.optional(),
  /** The newest payments, newest first, in the format of `GET /payments/{id}`. */
  story: few(paymentDetailSchema, mostTold).default([]),
  /** The active faults, as reported by the fault board. */
  faults: few(z.looseObject({ kind: z.string() }), mostListed).default([]),
});

export type Session = z.infer<typeof sessionSchema>;

/**
 * Sets the faults of a session again, except those that are used up.
 *
 * @throws {ConfigurationError} if one is invalid
 */
export async function setFaultsAgain(
  board: FaultBoard,
  faults: Session["faults"],
  chains: Readonly<Record<string, HarnessChain>>,
): Promise<void> {
  for (const { id: _, fired, usedUp, ...spec } of faults.map(readFaultReport)) {
    if (usedUp) continue;
    // Refill the operator first, so that removing the fault restores the gas money.
    if (spec.kind === "empty-operator") {
      await chains[spec.network]?.setBalance(harnessAccounts.operator.address, localGasMoney);
    }
    const times = "times" in spec ? spec.times : undefined;
    // A fault that has hit is already past its `nth` match.
    const rest = fired > 0 && times !== undefined ? { nth: 1, times: times - fired } : {};
    await board.add({ ...spec, ...rest });
  }
}
