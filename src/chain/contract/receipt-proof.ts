import { type Address, addressWord, type Hex, sameAddress, uintWord } from "../../protocol/hex.ts";
import { wordAt } from "../../rpc/read-hex.ts";
import type { Receipt } from "../chain.ts";
import type { EventLog } from "../log.ts";
import { decodeParameters } from "./decode-parameters.ts";
import {
  authorizationUsedTopic,
  forwardedTopic,
  settledTopic,
  settlementFailedTopic,
  transferTopic,
} from "./events.ts";
import { decodeRevert, describeRevert } from "./revert.ts";

/** A payment as its settlement was claimed. */
export type ExpectedSettlement = {
  asset: Address;
  payer: Address;
  authorizationNonce: Hex;
  value: bigint;
  recipient: Address;
};

/** How a mined transaction ended a settlement. `failure` is the reason, in a few words. */
export type SettlementProof = { settled: true } | { settled: false; failure: string };

/** What a receipt proves. */
export type SettlementProofs = {
  /** How it ended this settlement; undefined when the receipt proves neither success nor failure. */
  find(expected: ExpectedSettlement): SettlementProof | undefined;
};

/**
 * Reads which settlements a receipt proves, as settled or as failed.
 *
 * Settled takes three logs: `Settled` of the facilitator contract, with the value and the recipient that were
 * claimed, and of the token itself `AuthorizationUsed` of that very authorization and a `Transfer` of the value
 * from the payer to the contract; each `Transfer` proves one settlement. Failed takes `SettlementFailed`. The
 * receipt of a reverted transaction proves nothing of single settlements.
 */
export function readSettlements(receipt: Receipt, facilitatorContract: Address): SettlementProofs {
  const settled = new Set<string>();
  const failed = new Map<string, string>();
  const used = new Set<string>();
  const received = new Map<string, number>();
  const contract = addressWord(facilitatorContract);
  const claims: { key: string; transfer: string; authorization: string }[] = [];

  for (const { address, topics, data } of receipt.succeeded ? receipt.logs : []) {
    const [event, ...indexed] = topics.map((topic) => topic.slice(2).toLowerCase());
    const [first = "", second = "", third = ""] = indexed;
    const emitter = addressWord(address);
    if (sameAddress(address, facilitatorContract)) {
      if (`0x${event}` === settledTopic && indexed.length === 3) {
        const [recipient, value] = [wordAt(data, 0)?.toLowerCase(), wordAt(data, 1)?.toLowerCase()];
        claims.push({
          key: [first, second, third, recipient, value].join(),
          transfer: [first, second, value].join(),
          authorization: [first, second, third].join(),
        });
      } else if (`0x${event}` === settlementFailedTopic && indexed.length === 3) {
        failed.set([first, second, third].join(), readReason(data));
      }
    } else if (`0x${event}` === authorizationUsedTopic && indexed.length === 2) {
      used.add([emitter, first, second].join());
    } else if (`0x${event}` === transferTopic && indexed.length === 2 && second === contract) {
      const transfer = [emitter, first, wordAt(data, 0)?.toLowerCase()].join();
      received.set(transfer, (received.get(transfer) ?? 0) + 1);
    }
  }

  for (const { key, transfer, authorization } of claims) {
    const left = received.get(transfer) ?? 0;
    if (left === 0 || !used.delete(authorization)) continue;
    received.set(transfer, left - 1);
    settled.add(key);
  }

  return {
    find({ asset, payer, authorizationNonce, value, recipient }) {
      const authorization = [
        addressWord(asset),
        addressWord(payer),
        authorizationNonce.slice(2).toLowerCase(),
      ].join();
      const key = [authorization, addressWord(recipient), value.toString(16).padStart(64, "0")].join();
      if (settled.has(key)) return { settled: true };
      const failure = failed.get(authorization);
      return failure === undefined ? undefined : { settled: false, failure };
    },
  };
}

/**
 * Whether a receipt proves that stranded value of this payment was paid out: `Forwarded` of the facilitator contract
 * and, of the token itself, a `Transfer` of the value from the contract to the recipient.
 */
export function provesForwarding(
  receipt: Receipt,
  facilitatorContract: Address,
  { asset, payer, authorizationNonce, value, recipient }: ExpectedSettlement,
): boolean {
  const amount = uintWord(value);
  const forwarded = [forwardedTopic, topic(asset), topic(payer), authorizationNonce];
  const paid = [transferTopic, topic(facilitatorContract), topic(recipient)];
  return (
    receipt.succeeded &&
    receipt.logs.some((log) =>
      isEvent(log, facilitatorContract, forwarded, `0x${addressWord(recipient)}${amount}`),
    ) &&
    receipt.logs.some((log) => isEvent(log, asset, paid, `0x${amount}`))
  );
}

/** Whether a log is exactly this event, in whatever casing. */
function isEvent(log: EventLog, emitter: Address, topics: readonly Hex[], data: Hex): boolean {
  const text = (parts: readonly string[]) => parts.join().toLowerCase();
  return (
    sameAddress(log.address, emitter) &&
    text(log.topics) === text(topics) &&
    text([log.data]) === text([data])
  );
}

function topic(address: Address): Hex {
  return `0x${addressWord(address)}`;
}

function readReason(data: Hex): string {
  const [reason] = decodeParameters(["bytes"], data) ?? [];
  return describeRevert(decodeRevert(typeof reason === "string" ? `0x${reason.slice(2)}` : "0x"));
}
