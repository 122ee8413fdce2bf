import type { EventLog, Receipt } from "../../chain/logs-and-receipts.ts";
import { decodeParameters } from "../../chain/revert.ts";
import { type Address, addressWord, type Hex, keccak256Text, wordAt } from "../../protocol/hex.ts";

/*
 * The events that prove what happened to a payment: those of the facilitator contract, for EIP-3009 and for Permit2, and
 * those of tokens (EIP-3009, ERC-20). Permit2 emits no event for transfers, and the events of its proxies name no payment.
 * Decoded by hand, because loading viem's decoder would make the service start too slowly. Tests compare topics and
 * decoding with the generated ABIs.
 */

/** The first topic of each event. */
export const settledTopic = keccak256Text("Settled(address,address,bytes32,address,uint256)");
const settlementFailedTopic = keccak256Text("SettlementFailed(address,address,bytes32,bytes)");
export const forwardedTopic = keccak256Text("Forwarded(address,address,bytes32,address,uint256)");
export const permit2SettledTopic = keccak256Text("Permit2Settled(address,address,uint256,address,uint256)");
const permit2FailedTopic = keccak256Text("Permit2SettlementFailed(address,address,uint256,bytes)");
export const permit2ForwardedTopic = keccak256Text(
  "Permit2Forwarded(address,address,uint256,address,uint256)",
);
export const authorizationUsedTopic = keccak256Text("AuthorizationUsed(address,bytes32)");
export const authorizationCanceledTopic = keccak256Text("AuthorizationCanceled(address,bytes32)");
export const transferTopic = keccak256Text("Transfer(address,address,uint256)");

export type AuthorizationRef = { token: Address; payer: Address; authorizationNonce: Hex };

/** The events of the facilitator contract. */
type PayoutName = "Settled" | "Forwarded" | "Permit2Settled" | "Permit2Forwarded";
type FailureName = "SettlementFailed" | "Permit2SettlementFailed";

type EventFields =
  | (AuthorizationRef & { name: PayoutName; recipient: Address; value: bigint })
  /** `reason` is the revert data, truncated by the contract; `0x` if it cannot be read. */
  | (AuthorizationRef & { name: FailureName; reason: Hex })
  | (AuthorizationRef & { name: "AuthorizationUsed" | "AuthorizationCanceled" })
  | { name: "Transfer"; from: Address; to: Address; value: bigint };

/** A decoded event, and the contract that emitted it. Addresses and hex are in lower case. */
export type PaymentEvent = EventFields & { emitter: Address; logIndex: number };

/** Decodes a log as one of these events; undefined if it is another event, or does not match its ABI. */
export function decodeEvent({ address, topics, data, logIndex }: EventLog): PaymentEvent | undefined {
  const [topic, ...indexed] = topics.map(lowerCase);
  const emitter = lowerCase(address);
  const fields = topic && decoders.get(topic)?.(indexed, lowerCase(data), emitter);
  return fields ? { ...fields, emitter, logIndex } : undefined;
}

/** The events of a transaction, in the order of its logs; empty if it reverted. */
export function decodeEvents({ succeeded, logs }: Receipt): readonly PaymentEvent[] {
  return succeeded ? logs.flatMap((log) => decodeEvent(log) ?? []) : [];
}

export type TransferEvent = Extract<PaymentEvent, { name: "Transfer" }>;

/**
 * The used authorizations (EIP-3009), each with its transfer. The token emits `AuthorizationUsed` and then `Transfer` with no
 * call in between, so two adjacent logs belong together. `AuthorizationCanceled` moves nothing, whatever follows it.
 */
export function readUses(
  events: readonly PaymentEvent[],
): readonly { use: PaymentEvent & AuthorizationRef; transfer: TransferEvent }[] {
  const byIndex = new Map(events.map((event) => [event.logIndex, event]));
  return events.flatMap((use) => {
    if (use.name !== "AuthorizationUsed") return [];
    const transfer = byIndex.get(use.logIndex + 1);
    const isOfIt =
      transfer?.name === "Transfer" && transfer.emitter === use.emitter && transfer.from === use.payer;
    return isOfIt ? [{ use, transfer }] : [];
  });
}

/** A key for maps and sets that identifies an authorization, regardless of the case of its hex. */
export function authorizationKey({ token, payer, authorizationNonce }: AuthorizationRef): string {
  return `${token} ${payer} ${authorizationNonce}`.toLowerCase();
}

/** The padding before an address in a word. */
const addressPadding = `0x${"0".repeat(24)}`;

/** Decodes the indexed fields (topics) and the data of an event, both in lower case. */
type Decoder = (indexed: readonly Hex[], data: Hex, emitter: Address) => EventFields | undefined;

const decoders: ReadonlyMap<string, Decoder> = new Map<string, Decoder>([
  [settledTopic, decodePayout("Settled")],
  [forwardedTopic, decodePayout("Forwarded")],
  [permit2SettledTopic, decodePayout("Permit2Settled")],
  [permit2ForwardedTopic, decodePayout("Permit2Forwarded")],
  [settlementFailedTopic, decodeFailure("SettlementFailed")],
  [permit2FailedTopic, decodeFailure("Permit2SettlementFailed")],
  [authorizationUsedTopic, decodeAuthorizationEvent("AuthorizationUsed")],
  [authorizationCanceledTopic, decodeAuthorizationEvent("AuthorizationCanceled")],
  [
    transferTopic,
    (indexed, data) => {
      const [from, to] = [readAddress(indexed[0]), readAddress(indexed[1])];
      // A transfer with a third indexed field is an ERC-721 transfer.
      if (from === undefined || to === undefined || indexed.length !== 2) return undefined;
      return data.length === 2 + 64 ? { name: "Transfer", from, to, value: BigInt(data) } : undefined;
    },
  ],
]);

function decodeFailure(name: FailureName): Decoder {
  return (indexed, data) => {
    const ref = readAuthorization(indexed);
    const [reason] = decodeParameters(["bytes"], data) ?? [];
    return ref && { name, ...ref, reason: typeof reason === "string" ? `0x${reason.slice(2)}` : "0x" };
  };
}

function decodePayout(name: PayoutName): Decoder {
  return (indexed, data) => {
    const ref = readAuthorization(indexed);
    const [recipient, value] = [readAddress(`0x${wordAt(data, 0)}`), wordAt(data, 1)];
    if (ref === undefined || recipient === undefined || data.length !== 2 + 2 * 64) return undefined;
    return { name, ...ref, recipient, value: BigInt(`0x${value}`) };
  };
}

function decodeAuthorizationEvent(name: "AuthorizationUsed" | "AuthorizationCanceled"): Decoder {
  return (indexed, _data, emitter) => {
    const ref = readAuthorization([`0x${addressWord(emitter)}`, ...indexed]);
    return ref && { name, ...ref };
  };
}

/** Token, payer and authorizationNonce, each a topic. */
function readAuthorization(words: readonly Hex[]): AuthorizationRef | undefined {
  const [token, payer, authorizationNonce] = [readAddress(words[0]), readAddress(words[1]), words[2]];
  if (token === undefined || payer === undefined || authorizationNonce === undefined) return undefined;
  return words.length === 3 ? { token, payer, authorizationNonce } : undefined;
}

/** Reads the address in a lower-case word; undefined if the word is not a padded address. */
function readAddress(word: Hex | undefined): Address | undefined {
  return word?.startsWith(addressPadding) && word.length === 66 ? `0x${word.slice(26)}` : undefined;
}

function lowerCase(hex: Hex): Hex {
  return `0x${hex.slice(2).toLowerCase()}`;
}
