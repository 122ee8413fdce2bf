import { sql } from "kysely";
import { type Address, isAddress, isBytes } from "../../protocol/hex.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import { readTransaction } from "../../protocol/signed-transaction.ts";
import type { Database } from "./database.ts";

/** The facilitator contract that a stored settle transaction calls; undefined if it calls the token itself, or is unreadable. */
export function contractOf(raw: string, asset: string): Address | undefined {
  if (!isBytes(raw)) return undefined;
  const { to } = readTransaction(raw);
  return isAddress(to) && to !== asset ? to : undefined;
}

/** A contract that undecided settlements of a network go through. */
export type OpenContract = { network: NetworkName; contract: Address; settlements: number };

/**
 * The contracts that undecided settlements go through, by their signed transactions, so that it also reads databases that
 * are behind this version. The tables must be there.
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
