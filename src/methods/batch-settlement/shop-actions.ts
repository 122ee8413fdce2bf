import { z } from "zod";
import type { Address, Hex } from "../../protocol/hex.ts";
import type { Network } from "../../protocol/networks.ts";
import { address, bytes32, signature, uint256String } from "../../protocol/primitives.ts";
import { channelId } from "./channel.ts";
import { mostClaims } from "./payloads.ts";

/*
 * The requests with which a shop claims, refunds and gets paid, built from the channels in the public package's file storage.
 */

/** A channel as the public package stores it for a shop: its newest voucher, and how much of it was charged. */
const storedChannelSchema = z.object({
  channelId: bytes32,
  channelConfig: z.object({
    payer: address,
    payerAuthorizer: address,
    receiver: address,
    receiverAuthorizer: address,
    token: address,
    withdrawDelay: z.int(),
    salt: bytes32,
  }),
  chargedCumulativeAmount: uint256String,
  signedMaxClaimable: uint256String,
  signature,
  totalClaimed: uint256String,
  /** Set while a purchase is being served; `expiresAt` is in unix milliseconds. */
  pendingRequest: z.object({ expiresAt: z.number() }).optional(),
});

type Chain = Pick<Network, "name" | "caip2" | "chainId">;

/** A shop's channel, with the network that its id belongs to. */
export type StoredChannel = z.infer<typeof storedChannelSchema> & { network: Chain };

/** Reads a shop's channel; undefined for anything else, including a channel on another network. */
export function readStoredChannel(value: unknown, networks: readonly Chain[]): StoredChannel | undefined {
  const { data } = storedChannelSchema.safeParse(value);
  if (data === undefined) return undefined;
  const id = data.channelId.toLowerCase();
  const network = networks.find(({ chainId }) => channelId(data.channelConfig, chainId) === id);
  return network && { ...data, network };
}

type ShopTerms = { amount?: string; maxTimeoutSeconds?: number; extra?: object };

/** Builds the body of a channel request, by default with the minimal requirements that public shops send. */
export function shopRequest(
  { caip2 }: Pick<Network, "caip2">,
  { receiver, token }: { receiver: Address; token: Address },
  payload: object,
  { amount = "0", maxTimeoutSeconds = 0, extra = {} }: ShopTerms = {},
) {
  const requirements = {
    scheme: "batch-settlement",
    network: caip2,
    amount,
    asset: token,
    payTo: receiver,
    maxTimeoutSeconds,
    extra,
  };
  const paymentPayload = { x402Version: 2, accepted: requirements, payload };
  return { x402Version: 2, paymentPayload, paymentRequirements: requirements };
}

/** Builds the request to pay out what was claimed. */
export function settleRequest(network: Pick<Network, "caip2">, shop: { receiver: Address; token: Address }) {
  return shopRequest(network, shop, { type: "settle", ...shop });
}

const rowOf = ({ channelConfig: channel, signedMaxClaimable, signature, ...stored }: StoredChannel) => ({
  voucher: { channel, maxClaimableAmount: `${signedMaxClaimable}` },
  signature,
  totalClaimed: `${stored.chargedCumulativeAmount}`,
});

const voucherOf = ({ channelId, signedMaxClaimable, signature }: StoredChannel) => ({
  channelId,
  maxClaimableAmount: `${signedMaxClaimable}`,
  signature,
});

/** Builds the requests that claim what was charged. Each has channels with the same network, shop, token and authorizer. */
export function claimRequests(channels: readonly StoredChannel[]) {
  const batches = Map.groupBy(
    channels,
    ({ network, channelConfig: { receiver, token, receiverAuthorizer } }) =>
      [network.caip2, receiver, token, receiverAuthorizer].join().toLowerCase(),
  );
  return [...batches.values()].flatMap((batch) => {
    const [first] = batch;
    if (first === undefined) return [];
    const pages = Array.from({ length: Math.ceil(batch.length / mostClaims) }, (_, page) =>
      batch.slice(page * mostClaims, (page + 1) * mostClaims),
    );
    return pages.map((page) => ({
      network: first.network,
      channels: page,
      body: shopRequest(first.network, first.channelConfig, { type: "claim", claims: page.map(rowOf) }),
    }));
  });
}

/** Builds the request that reads a channel's state before its refund. */
export function refundQuestion(stored: StoredChannel) {
  const { network, channelConfig } = stored;
  const { receiverAuthorizer, withdrawDelay } = channelConfig;
  const payload = { type: "refund", channelConfig, voucher: voucherOf(stored) };
  return shopRequest(network, channelConfig, payload, { extra: { receiverAuthorizer, withdrawDelay } });
}

/** The state of a channel in responses. */
const channelStateSchema = z.object({
  balance: uint256String,
  totalClaimed: uint256String,
  refundNonce: uint256String,
});

/** Reads the `extra` of the response to {@link refundQuestion}; undefined if it is not a channel state. */
export const readState = (extra: unknown) => channelStateSchema.safeParse(extra).data;

/**
 * Builds the request that refunds to the payer what was not charged, and claims the rest.
 *
 * @returns undefined if nothing is left to refund
 */
export function refundRequest(stored: StoredChannel, state: z.infer<typeof channelStateSchema>) {
  const { network, channelConfig, chargedCumulativeAmount: charged } = stored;
  const isClaimed = charged <= state.totalClaimed;
  const amount = state.balance - (isClaimed ? state.totalClaimed : charged);
  if (amount <= 0n) return undefined;
  return shopRequest(network, channelConfig, {
    type: "refund",
    channelConfig,
    voucher: voucherOf(stored),
    amount: `${amount}`,
    refundNonce: `${state.refundNonce}`,
    claims: isClaimed ? [] : [rowOf(stored)],
  });
}

/** Keeps the newest copy of each channel. An older copy would refund purchases that were charged since. */
export function newestOf(channels: readonly StoredChannel[]): StoredChannel[] {
  const newest = new Map<string, StoredChannel>();
  for (const one of channels) {
    const id = one.channelId.toLowerCase();
    const other = newest.get(id);
    if (other === undefined || one.chargedCumulativeAmount > other.chargedCumulativeAmount)
      newest.set(id, one);
  }
  return [...newest.values()];
}

/** Finds a channel by its id. */
export const findStored = (channels: readonly StoredChannel[], id: Hex) =>
  channels.find(({ channelId }) => channelId.toLowerCase() === id.toLowerCase());
