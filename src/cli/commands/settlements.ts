import type { Settlement } from "../../ledger/settlement.ts";

/** A settlement's fields by their names, as text; null where there is nothing. The columns of the CSV, in order. */
export function settlementAsRecord(settlement: Settlement) {
  return {
    id: settlement.id,
    organizationId: settlement.organizationId,
    state: settlement.state,
    network: settlement.network,
    asset: settlement.asset,
    payer: settlement.payer,
    authorizationNonce: settlement.authorizationNonce,
    value: settlement.value.toString(),
    recipient: settlement.recipient,
    operator: settlement.operator,
    txNonce: settlement.txNonce.toString(),
    transaction: settlement.transactionHash,
    blockNumber: settlement.blockNumber?.toString() ?? null,
    blockHash: settlement.blockHash,
    failure: settlement.failure,
    claimedAt: isoTime(settlement.claimedAt),
    concludedAt: isoTime(settlement.concludedAt),
    deliveredAt: isoTime(settlement.deliveredAt),
  };
}

/** The columns of the CSV. */
export const settlementColumns = [
  "id",
  "organizationId",
  "state",
  "network",
  "asset",
  "payer",
  "authorizationNonce",
  "value",
  "recipient",
  "operator",
  "txNonce",
  "transaction",
  "blockNumber",
  "blockHash",
  "failure",
  "claimedAt",
  "concludedAt",
  "deliveredAt",
] as const satisfies readonly (keyof ReturnType<typeof settlementAsRecord>)[];

function isoTime(time: number): string;
function isoTime(time: number | null): string | null;
function isoTime(time: number | null): string | null {
  return time === null ? null : new Date(time).toISOString();
}
