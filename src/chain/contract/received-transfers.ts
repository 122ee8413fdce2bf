import { type Address, addressWord, type Hex, sameAddress } from "../../protocol/hex.ts";
import { readQuantity } from "../../rpc/read-hex.ts";
import type { Receipt } from "../chain.ts";
import type { EventLog } from "../log.ts";
import { authorizationUsedTopic, settledTopic, transferTopic } from "./events.ts";

/** A transfer of an asset to the facilitator contract. */
export type ReceivedTransfer = {
  logIndex: number;
  from: Address;
  value: bigint;
  /** Of the authorization that brought it; undefined when none did. In lower case. */
  authorizationNonce: Hex | undefined;
  /** Whether it was part of a settlement, which sent the value on. */
  settled: boolean;
};

/**
 * Reads what a transaction brought to the facilitator contract, and by which authorizations. The token emits
 * `AuthorizationUsed` and, with no call in between, the `Transfer`: a pair that stands next to each other belongs
 * together. An `AuthorizationCanceled` brings nothing, whatever stands behind it.
 */
export function readReceivedTransfers(
  receipt: Receipt,
  asset: Address,
  facilitatorContract: Address,
): readonly ReceivedTransfer[] {
  if (!receipt.succeeded) return [];
  const byIndex = new Map(receipt.logs.map((log) => [log.logIndex, log]));
  const settled = new Set(receipt.logs.flatMap((log) => settledKey(log, asset, facilitatorContract) ?? []));
  return receipt.logs.flatMap((log) => {
    const transfer = readTransfer(log, asset, facilitatorContract);
    if (transfer === undefined) return [];
    const { from, value } = transfer;
    const authorizationNonce = usedNonce(byIndex.get(log.logIndex - 1), asset, from);
    const isSettled = authorizationNonce !== undefined && settled.has(keyOf(from, authorizationNonce));
    return [{ logIndex: log.logIndex, from, value, authorizationNonce, settled: isSettled }];
  });
}

/** Reads a log as a transfer of the asset to the facilitator contract; undefined when it is none. */
export function readTransfer(
  { address, topics, data }: EventLog,
  asset: Address,
  facilitatorContract: Address,
): { from: Address; value: bigint } | undefined {
  const [event, from, to, ...more] = topics;
  const value = readQuantity(data);
  if (!sameAddress(address, asset) || event?.toLowerCase() !== transferTopic) return undefined;
  if (from === undefined || to === undefined || more.length > 0 || value === undefined) return undefined;
  return to.slice(2).toLowerCase() === addressWord(facilitatorContract)
    ? { from: `0x${from.slice(26).toLowerCase()}`, value }
    : undefined;
}

/** The nonce of a payer's authorization that a log says was used; undefined when it says something else. */
function usedNonce(log: EventLog | undefined, asset: Address, payer: Address): Hex | undefined {
  if (log === undefined || !sameAddress(log.address, asset)) return undefined;
  const [event, authorizer, nonce] = log.topics;
  if (event?.toLowerCase() !== authorizationUsedTopic || nonce === undefined) return undefined;
  return authorizer?.slice(2).toLowerCase() === addressWord(payer)
    ? `0x${nonce.slice(2).toLowerCase()}`
    : undefined;
}

function settledKey(
  { address, topics }: EventLog,
  asset: Address,
  facilitatorContract: Address,
): string | undefined {
  const [event, token, payer, nonce] = topics;
  if (!sameAddress(address, facilitatorContract) || event?.toLowerCase() !== settledTopic) return undefined;
  if (token?.slice(2).toLowerCase() !== addressWord(asset)) return undefined;
  return payer && nonce && keyOf(`0x${payer.slice(26)}`, nonce);
}

function keyOf(payer: Address, nonce: Hex): string {
  return `${payer} ${nonce}`.toLowerCase();
}
