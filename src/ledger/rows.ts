import type { Hex } from "../protocol/hex.ts";
import type { Attempt, Settlement } from "./settlement.ts";
import type { AttemptsTable, SettlementsTable } from "./tables.ts";

/** Hex as the ledger keeps it: equal bytes are equal text. */
export function lowerCase(hex: Hex): Hex {
  return hex.toLowerCase() as Lowercase<Hex>;
}

/** An integer as a 64-bit column keeps it, which is read back as a number. */
export function toSafeInteger(value: bigint): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw new RangeError(`${value} does not fit a database integer`);
  return number;
}

export function toSettlement(row: SettlementsTable): Settlement {
  return {
    id: row.id,
    organizationId: row.organization_id,
    network: row.network,
    chainId: row.chain_id,
    method: row.method,
    asset: row.asset,
    payer: row.payer,
    payerCode: row.payer_code,
    nonce: row.nonce,
    nonceSpace: row.nonce_space,
    digest: row.digest,
    amount: BigInt(row.amount),
    window: { first: BigInt(row.valid_first), last: BigInt(row.valid_last) },
    payload: row.payload,
    payTo: row.pay_to,
    signature: row.signature,
    recipient: row.recipient,
    state: row.state,
    operator: row.operator,
    txNonce: row.tx_nonce,
    transactionHash: row.transaction_hash,
    blockNumber: row.block_number === null ? null : BigInt(row.block_number),
    blockHash: row.block_hash,
    failure: row.failure,
    claimedBlock: BigInt(row.claimed_block),
    claimedAt: row.claimed_at,
    // It stays in the row of one that is undecided again: the gas was charged then.
    concludedAt: row.state === "submitted" ? null : row.concluded_at,
    deliveredAt: row.delivered_at,
  };
}

export function fromSettlement(settlement: Settlement): SettlementsTable {
  return {
    id: lowerCase(settlement.id),
    organization_id: settlement.organizationId,
    network: settlement.network,
    chain_id: settlement.chainId,
    method: settlement.method,
    asset: lowerCase(settlement.asset),
    payer: lowerCase(settlement.payer),
    nonce: lowerCase(settlement.nonce),
    nonce_space: lowerCase(settlement.nonceSpace),
    digest: lowerCase(settlement.digest),
    amount: settlement.amount.toString(),
    valid_first: settlement.window.first.toString(),
    valid_last: settlement.window.last.toString(),
    payload: settlement.payload,
    pay_to: settlement.payTo === null ? null : lowerCase(settlement.payTo),
    signature: lowerCase(settlement.signature),
    recipient: lowerCase(settlement.recipient),
    state: settlement.state,
    operator: lowerCase(settlement.operator),
    tx_nonce: settlement.txNonce,
    transaction_hash: lowerCase(settlement.transactionHash),
    block_number: settlement.blockNumber === null ? null : toSafeInteger(settlement.blockNumber),
    block_hash: settlement.blockHash === null ? null : lowerCase(settlement.blockHash),
    failure: settlement.failure,
    claimed_block: toSafeInteger(settlement.claimedBlock),
    used_by_block: null,
    next_look_at: 0,
    claimed_at: settlement.claimedAt,
    concluded_at: settlement.concludedAt,
    delivered_at: settlement.deliveredAt,
    payer_code: settlement.payerCode === null ? null : lowerCase(settlement.payerCode),
  };
}

export function toAttempt(row: Omit<AttemptsTable, "state">): Attempt {
  return {
    hash: row.hash,
    chainId: row.chain_id,
    operator: row.operator,
    txNonce: row.tx_nonce,
    kind: row.kind,
    raw: row.raw,
    maxFeePerGas: BigInt(row.max_fee_per_gas),
    maxPriorityFeePerGas: BigInt(row.max_priority_fee_per_gas),
    createdAt: row.created_at,
  };
}

/** The columns of an attempt that was just signed. */
export function fromAttempt(attempt: Attempt): AttemptsTable {
  return {
    hash: lowerCase(attempt.hash),
    chain_id: attempt.chainId,
    operator: lowerCase(attempt.operator),
    tx_nonce: attempt.txNonce,
    kind: attempt.kind,
    raw: lowerCase(attempt.raw),
    max_fee_per_gas: attempt.maxFeePerGas.toString(),
    max_priority_fee_per_gas: attempt.maxPriorityFeePerGas.toString(),
    state: "open",
    created_at: attempt.createdAt,
  };
}
