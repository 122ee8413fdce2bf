import {
  type Address,
  addressWord,
  type Hex,
  keccak256,
  keccak256Text,
  sameAddress,
  uintWord,
} from "../../protocol/hex.ts";
import { zeroAddress } from "../../protocol/wire-values.ts";
import { digestUnder, domainSeparator } from "../eip712.ts";
import { batchSettlementAddress, erc3009CollectorAddress, permit2CollectorAddress } from "./contracts.ts";

/*
 * Channels of scheme "batch-settlement", and their signed messages. All are EIP-712 messages in the domain of the settlement
 * contract, except for deposits.
 */

/** The config of a channel; its hash is the channel's id. `withdrawDelay` is in seconds. */
export type ChannelConfig = {
  payer: Address;
  /** The key that signs vouchers; zero if the payer signs them itself. */
  payerAuthorizer: Address;
  receiver: Address;
  /** The account that may claim and refund besides the receiver. */
  receiverAuthorizer: Address;
  token: Address;
  withdrawDelay: number;
  salt: Hex;
};

/** A payer's signature over the total that may be claimed from a channel. */
export type Voucher = { maxClaimableAmount: bigint; signature: Hex };

/** A row of a claim: a voucher, and the total to claim with it. */
export type VoucherClaim = Voucher & { channel: ChannelConfig; totalClaimed: bigint };

/** The contract's bounds for `withdrawDelay`, in seconds, both inclusive. */
export const withdrawDelays = { least: 900, most: 2_592_000 } as const;

/** The encoded EIP-712 types of the messages. */
export const channelTypes = {
  channel:
    "ChannelConfig(address payer,address payerAuthorizer,address receiver,address receiverAuthorizer,address token,uint40 withdrawDelay,bytes32 salt)",
  voucher: "Voucher(bytes32 channelId,uint128 maxClaimableAmount)",
  refund: "Refund(bytes32 channelId,uint256 nonce,uint128 amount)",
  claimEntry: "ClaimEntry(bytes32 channelId,uint128 maxClaimableAmount,uint128 totalClaimed)",
  receive:
    "ReceiveWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)",
  witness: "DepositWitness(bytes32 channelId)",
  permitted: "TokenPermissions(address token,uint256 amount)",
  permit:
    "PermitWitnessTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,DepositWitness witness)",
} as const;

/** The EIP-712 type hashes of the messages. */
export const channelTypehashes = {
  channel: keccak256Text(channelTypes.channel),
  voucher: keccak256Text(channelTypes.voucher),
  refund: keccak256Text(channelTypes.refund),
  claimEntry: keccak256Text(channelTypes.claimEntry),
  claimBatch: keccak256Text(`ClaimBatch(ClaimEntry[] claims)${channelTypes.claimEntry}`),
  receive: keccak256Text(channelTypes.receive),
  witness: keccak256Text(channelTypes.witness),
  permitted: keccak256Text(channelTypes.permitted),
  permit: keccak256Text(`${channelTypes.permit}${channelTypes.witness}${channelTypes.permitted}`),
} as const;

/** The EIP-712 domain of the settlement contract, without its chain and address. */
export const channelDomain = { name: "x402 Batch Settlement", version: "1" } as const;

const separators = new Map<number, Hex>();

/** The domain separator of the settlement contract on a chain. */
export function channelSeparator(chainId: number): Hex {
  const separator =
    separators.get(chainId) ??
    domainSeparator({ ...channelDomain, address: batchSettlementAddress }, chainId);
  separators.set(chainId, separator);
  return separator;
}

/** The fields of a config, each as one ABI word, without 0x. */
export function configWords(config: ChannelConfig): string {
  const { payer, payerAuthorizer, receiver, receiverAuthorizer, token, withdrawDelay, salt } = config;
  const accounts = [payer, payerAuthorizer, receiver, receiverAuthorizer, token].map(addressWord).join("");
  return `${accounts}${uintWord(BigInt(withdrawDelay))}${salt.slice(2).toLowerCase()}`;
}

/** The id of a channel on a chain: the EIP-712 digest of its config. */
export function channelId(config: ChannelConfig, chainId: number): Hex {
  const hash = keccak256(`${channelTypehashes.channel}${configWords(config)}`);
  return digestUnder(channelSeparator(chainId), hash);
}

export function voucherDigest(channel: Hex, maxClaimableAmount: bigint, chainId: number): Hex {
  const hash = keccak256(`${channelTypehashes.voucher}${channel.slice(2)}${uintWord(maxClaimableAmount)}`);
  return digestUnder(channelSeparator(chainId), hash);
}

/** The digest that a receiver's authorizer signs to allow a refund. */
export function refundDigest(channel: Hex, nonce: bigint, amount: bigint, chainId: number): Hex {
  const members = `${channel.slice(2)}${uintWord(nonce)}${uintWord(amount)}`;
  return digestUnder(channelSeparator(chainId), keccak256(`${channelTypehashes.refund}${members}`));
}

/** The digest that a receiver's authorizer signs to allow a batch of claims, in this order. */
export function claimBatchDigest(claims: readonly VoucherClaim[], chainId: number): Hex {
  const entries = claims.map(({ channel, maxClaimableAmount, totalClaimed }) => {
    const id = channelId(channel, chainId).slice(2);
    const members = `${id}${uintWord(maxClaimableAmount)}${uintWord(totalClaimed)}`;
    return keccak256(`${channelTypehashes.claimEntry}${members}`).slice(2);
  });
  const hash = keccak256(`${channelTypehashes.claimBatch}${keccak256(`0x${entries.join("")}`).slice(2)}`);
  return digestUnder(channelSeparator(chainId), hash);
}

/** The nonce of the EIP-3009 authorization of a deposit. */
export function depositNonce(channel: Hex, salt: Hex): Hex {
  return keccak256(`${channel}${salt.slice(2).toLowerCase()}`);
}

/** The signed fields of a deposit, apart from its times. */
export type SignedDeposit = {
  from: Address;
  token: Address;
  amount: bigint;
  channel: Hex;
  nonce: Hex;
};

/**
 * The EIP-712 hash of the EIP-3009 authorization of a deposit; its payee is the collector. Times are unix seconds, both
 * exclusive.
 */
export function receiveHash(
  { from, amount, nonce }: SignedDeposit,
  times: { validAfter: bigint; validBefore: bigint },
): Hex {
  const accounts = `${addressWord(from)}${addressWord(erc3009CollectorAddress)}`;
  const numbers = [amount, times.validAfter, times.validBefore].map(uintWord).join("");
  return keccak256(`${channelTypehashes.receive}${accounts}${numbers}${nonce.slice(2)}`);
}

/** The EIP-712 hash of the Permit2 permit of a deposit; its spender is the collector, its witness the channel. */
export function permitHash({ token, amount, channel, nonce }: SignedDeposit, deadline: bigint): Hex {
  const permitted = keccak256(`${channelTypehashes.permitted}${addressWord(token)}${uintWord(amount)}`);
  const witness = keccak256(`${channelTypehashes.witness}${channel.slice(2)}`);
  const spender = addressWord(permit2CollectorAddress);
  return keccak256(
    `${channelTypehashes.permit}${permitted.slice(2)}${spender}${nonce.slice(2)}${uintWord(deadline)}${witness.slice(2)}`,
  );
}

/** The key that must sign a channel's vouchers; undefined if the payer's account itself does. */
export function voucherKeyOf({ payerAuthorizer }: ChannelConfig): Address | undefined {
  return sameAddress(payerAuthorizer, zeroAddress) ? undefined : payerAuthorizer;
}
