import { sql } from "kysely";
import { type Address, isAddress, isBytes } from "../../protocol/hex.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import { readTransaction } from "../../protocol/signed-transaction.ts";
import type { Database } from "./database.ts";

/**
 * Returns the facilitator contract that a signed settle transaction calls; undefined if it calls the token itself or
 * is unreadable.
 */
export function contractOf(raw: string, asset: string): Address | undefined {
  if (!isBytes(raw)) return undefined;
  const { to } = readTransaction(raw);
  return isAddress(to) && to !== asset ? to : undefined;
}

/** A contract that undecided settlements on a network go through. */
export type OpenContract = { network: NetworkName; contract: Address; settlements: number };

/**
 * Finds the contracts that undecided settlements go through. It reads their signed transactions, so it works on
 * databases behind this version too. The tables must exist.
 */
export async function findOpenContracts(db: Database): Promise<readonly OpenContract[]> {
  type Row = { id: string; network: NetworkName; asset: string; raw: string };
  const { rows } = await sql<Row>`
    SELECT settlements.id, settlements.network, settlements.asset, attempts.raw
    FROM settlements JOIN attempts
      ON attempts.chain_id = settlements.chain_id AND attempts.operator = settlements.operator
      AND attempts.tx_nonce = settlements.tx_nonce
    WHERE settlements.state = 'submitted' AND attempts.kind = 'settle' AND attempts.state = 'open'
  `.execute(db);
  const found = new Map<string, { network: NetworkName; contract: Address; ids: Set<string> }>();
  for (const { id, network, asset, raw } of rows) {
    const contract = contractOf(raw, asset);
    if (contract === undefined) continue;
    const one = found.get(`${network} ${contract}`) ?? { network, contract, ids: new Set() };
    found.set(`${network} ${contract}`, one);
    one.ids.add(id);
  }
  return [...found.values()].map(({ network, contract, ids }) => ({
    network,
    contract,
    settlements: ids.size,
  }));
}
