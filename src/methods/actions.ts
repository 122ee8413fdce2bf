import type { Invalid } from "../protocol/catalogue.ts";
import { type Address, type Hex, sameAddress } from "../protocol/hex.ts";
import type { PaymentRequest } from "../protocol/requests.ts";
import { type ClaimedPayment, isOpen } from "../protocol/settlement-rules.ts";
import { type SignedPayment, settlementId } from "../protocol/signed-payment.ts";

/* Repeatable requests, such as claims, and channels that only one organization may use. */

/** An organization's earlier requests. */
export type KnownActions = {
  /** Returns true if the request was refused or answered; sending it again then makes a new request. */
  isClosed(payment: SignedPayment): boolean | Promise<boolean>;
  /** The newest settlements for the same receiver. */
  recent(): readonly RecentAction[] | Promise<readonly RecentAction[]>;
};

type RecentAction = {
  method: string;
  asset: Address;
  nonce: Hex;
  isOpen: boolean;
  blockNumber: bigint | null;
};

/** The channels that a payment concerns: those with the given ids, or all of a receiver for one token. */
export type OwnedChannels = {
  ids: readonly Hex[];
  /** True if the payment may open one of them. */
  opens: boolean;
  /** True if it only withdraws what was deposited before. */
  releases: boolean;
  /** True if any organization may submit the payment: the shop has signed it, or signs its claims itself. */
  isForAll: boolean;
  receiver?: { receiver: Address; token: Address };
  /** The refusal for other organizations. */
  refuse(): Invalid;
};

/** The channel that a payment opens (if its id is not known yet) and the amounts that the payment moves. */
export type ChannelRecord = {
  /** `isOwned`: only the organization that opened the channel may deposit into it. */
  opened?: { id: Hex; receiver: Address; token: Address; payer: Address; isOwned?: boolean };
  moves: readonly ChannelMove[];
  /** The total moved; undefined if it is the payment's amount. */
  moved?: bigint | undefined;
};

/** `channel` is the channel's id, or null for a payout. For a claim, `amount` is the new total. */
export type ChannelMove = {
  kind: "deposit" | "claim" | "refund" | "settle";
  channel: Hex | null;
  amount: bigint;
};

/** The calling organization, and lookups for the channels that organizations have opened on a chain. */
export type ChannelOwners = {
  organizationId: string;
  /** The address that receives the organization's payments, if any. */
  recipient: Address | undefined;
  /** The organizations that opened the channels, in the given order; undefined for an unknown channel. */
  ownersOf(ids: readonly Hex[]): MaybeLater<readonly (string | undefined)[]>;
  /** Returns true if the organization has opened a channel for this receiver and token. */
  hasReceiver(receiver: Address, token: Address): MaybeLater<boolean>;
};

type MaybeLater<T> = T | Promise<T>;

/** The refusal for an organization that may not use these channels in this payment; undefined if it may. */
export async function refuseForeign(
  { ids, opens, isForAll, receiver: of, refuse }: OwnedChannels,
  { organizationId, recipient, ownersOf, hasReceiver }: ChannelOwners,
): Promise<Invalid | undefined> {
  if (isForAll) return undefined;
  const owners = await ownersOf(ids);
  const isOwn = owners.every((owner) => (owner === undefined ? opens : owner === organizationId));
  if (!isOwn) return refuse();
  if (of === undefined || (recipient !== undefined && sameAddress(recipient, of.receiver))) return undefined;
  return (await hasReceiver(of.receiver, of.token)) ? undefined : refuse();
}

/**
 * Gives a repeatable request, such as a claim, its identity, based on the organization's earlier requests.
 *
 * @param name identifies the payment: see `Settling.identify`
 * @param find returns the settlement with an id, whichever organization it belongs to
 */
export async function nameRequest(
  request: PaymentRequest,
  organizationId: string,
  {
    name,
    find,
    recent,
  }: {
    name(payment: SignedPayment, known: KnownActions): Promise<SignedPayment>;
    find(
      id: Hex,
    ): MaybeLater<(Parameters<typeof isOpen>[0] & Pick<ClaimedPayment, "organizationId">) | null | undefined>;
    recent: KnownActions["recent"];
  },
): Promise<PaymentRequest> {
  const { chainId } = request.knownNetwork;
  const idOf = ({ nonceSpace, payer, nonce }: SignedPayment) =>
    settlementId(chainId, nonceSpace, payer, nonce);
  const payment = await name(request.payment, {
    async isClosed(candidate) {
      const settlement = await find(idOf(candidate));
      return settlement ? settlement.organizationId !== organizationId || !isOpen(settlement) : false;
    },
    recent,
  });
  if (payment === request.payment) return request;
  // A shop acts on its own channels, so its request has no payer.
  const payer = sameAddress(payment.payer, payment.payTo) ? undefined : request.payer;
  return { ...request, payer, payment, settlementId: idOf(payment) };
}
