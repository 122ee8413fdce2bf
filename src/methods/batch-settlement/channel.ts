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
 * Channels of scheme “batch-settlement”, and the messages that are signed about them: EIP-712, all but the deposits in the domain of
 * the settlement contract.
 */

/** The config of a channel, whose hash is its id. `withdrawDelay` in seconds. */
export type ChannelConfig = {
  payer: Address;
  /** The key that signs vouchers; zero where the payer itself does. */
  payerAuthorizer: Address;
  receiver: Address;
  /** The account that may claim and refund besides the receiver. */
  receiverAuthorizer: Address;
  token: Address;
  withdrawDelay: number;
  salt: Hex;
};

/** A payer's signature over the most that may be claimed from a channel in all. */
export type Voucher = { maxClaimableAmount: bigint; signature: Hex };

/** A voucher, and how much of it is to be claimed in all: a row of a claim. */
export type VoucherClaim = Voucher & { channel: ChannelConfig; totalClaimed: bigint };

/** The bounds of `withdrawDelay` by the contract. */
export const withdrawDelays = { least: 900, most: 2_592_000 } as const;

/** The types of the messages, as EIP-712 encodes them. */
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

/** The type hashes of the messages. */
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

/** The domain of the settlement contract, besides its chain and address. */
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

/** The members of a config, each as one ABI word, without 0x. */
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

/** The digest of a voucher. */
export function voucherDigest(channel: Hex, maxClaimableAmount: bigint, chainId: number): Hex {
  const hash = keccak256(`${channelTypehashes.voucher}${channel.slice(2)}${uintWord(maxClaimableAmount)}`);
  return digestUnder(channelSeparator(chainId), hash);
}

/** The digest by which a receiver's authorizer allows a refund. */
export function refundDigest(channel: Hex, nonce: bigint, amount: bigint, chainId: number): Hex {
  const members = `${channel.slice(2)}${uintWord(nonce)}${uintWord(amount)}`;
  return digestUnder(channelSeparator(chainId), keccak256(`${channelTypehashes.refund}${members}`));
}

/** The digest by which a receiver's authorizer allows claims, all of them together and in this order. */
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

/** A deposit as it is signed. Times are unix seconds, both exclusive. */
export type SignedDeposit = {
  from: Address;
  token: Address;
  amount: bigint;
  channel: Hex;
  nonce: Hex;
};

/** The EIP-712 hash of the EIP-3009 authorization of a deposit; its payee is the collector. */
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

/** The key that must have signed a channel's vouchers; undefined where the payer's account itself is asked. */
export function voucherKeyOf({ payerAuthorizer }: ChannelConfig): Address | undefined {
  return sameAddress(payerAuthorizer, zeroAddress) ? undefined : payerAuthorizer;
}
