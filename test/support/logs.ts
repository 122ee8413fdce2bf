import fc from "fast-check";
import { encodeAbiParameters, encodeEventTopics } from "viem";
import type { EventLog, Receipt } from "../../src/chain/logs-and-receipts.ts";
import { mockUsdcAbi } from "../../src/contracts/mockUsdc.ts";
import { x402FacilitatorAbi } from "../../src/contracts/x402Facilitator.ts";
import type { ReceivedPayment } from "../../src/methods/on-chain/payouts.ts";
import { type Address, type Hex, toHex } from "../../src/protocol/hex.ts";

/** Logs as the contracts emit them, encoded by viem from the generated ABIs. */

const address = (digit: string): Address => `0x${digit.repeat(40)}`;
/** Thirty-two bytes that repeat one digit. */
export const word = (digit: string): Hex => `0x${digit.repeat(64)}`;

export const [token, contract, recipient] = [address("a"), address("c"), address("e")];
export const stranger = address("9");

/** The default payment of the logs. */
export const payment: ReceivedPayment = {
  asset: token,
  payer: address("b"),
  authorizationNonce: word("d"),
  value: 10_000n,
  recipient,
};

/** A log without its index. */
export type UnplacedLog = Omit<EventLog, "logIndex">;

const uint = (value: bigint) => encodeAbiParameters([{ type: "uint256" }], [value]);

function log(emitter: Address, topics: readonly (Hex | Hex[] | null)[], data: Hex): UnplacedLog {
  return { address: emitter, topics: topics.flatMap((topic) => topic ?? []), data };
}

export function settledLog(of: ReceivedPayment, emitter = contract): UnplacedLog {
  const args = { token: of.asset, payer: of.payer, authorizationNonce: of.authorizationNonce };
  const topics = encodeEventTopics({ abi: x402FacilitatorAbi, eventName: "Settled", args });
  return log(emitter, topics, recipientAndValue(of));
}

export function forwarded(of: ReceivedPayment, emitter = contract): UnplacedLog {
  const args = { token: of.asset, payer: of.payer, authorizationNonce: of.authorizationNonce };
  const topics = encodeEventTopics({ abi: x402FacilitatorAbi, eventName: "Forwarded", args });
  return log(emitter, topics, recipientAndValue(of));
}

export function settlementFailed(of: ReceivedPayment, reason: Hex, emitter = contract): UnplacedLog {
  const args = { token: of.asset, payer: of.payer, authorizationNonce: of.authorizationNonce };
  const topics = encodeEventTopics({ abi: x402FacilitatorAbi, eventName: "SettlementFailed", args });
  return log(emitter, topics, encodeAbiParameters([{ type: "bytes" }], [reason]));
}

export function authorizationUsed(of: ReceivedPayment, emitter = of.asset): UnplacedLog {
  const args = { authorizer: of.payer, nonce: of.authorizationNonce };
  return log(emitter, encodeEventTopics({ abi: mockUsdcAbi, eventName: "AuthorizationUsed", args }), "0x");
}

export function authorizationCanceled(of: ReceivedPayment, emitter = of.asset): UnplacedLog {
  const args = { authorizer: of.payer, nonce: of.authorizationNonce };
  return log(
    emitter,
    encodeEventTopics({ abi: mockUsdcAbi, eventName: "AuthorizationCanceled", args }),
    "0x",
  );
}

export function transfer(
  of: ReceivedPayment,
  to = contract,
  emitter = of.asset,
  from = of.payer,
): UnplacedLog {
  const topics = encodeEventTopics({ abi: mockUsdcAbi, eventName: "Transfer", args: { from, to } });
  return log(emitter, topics, uint(of.value));
}

/** The receipt of a transaction with these logs, which are not the first in their block. */
export function receiptOf(logs: readonly UnplacedLog[], succeeded = true): Receipt {
  return {
    hash: word("1"),
    succeeded,
    blockNumber: 1n,
    blockHash: word("2"),
    logs: logs.map((entry, index) => ({ ...entry, logIndex: 7 + index })),
    gasCost: undefined,
  };
}

function recipientAndValue({ recipient, value }: ReceivedPayment): Hex {
  return encodeAbiParameters([{ type: "address" }, { type: "uint256" }], [recipient, value]);
}

/** Random combinations of logs: by any of these emitters, with any topics of real ones. */
export function noiseOf(emitters: readonly Address[], real: readonly { topics: readonly Hex[] }[]) {
  const log = fc.record({
    address: fc.constantFrom(...emitters),
    topics: fc.array(fc.constantFrom(...real.flatMap(({ topics }) => topics)), { maxLength: 5 }),
    data: fc.uint8Array({ maxLength: 200 }).map(toHex),
  });
  return fc.array(log, { maxLength: 10 });
}
