import type { Invalid } from "../protocol/catalogue.ts";
import { type Address, type Hex, sameAddress } from "../protocol/hex.ts";
import type { PaymentRequest } from "../protocol/requests.ts";
import { type ClaimedPayment, isOpen } from "../protocol/settlement-rules.ts";
import { type SignedPayment, settlementId } from "../protocol/signed-payment.ts";

/* Requests that can be repeated, such as claims, and channels that only one organization may use. */

/** The earlier requests of an organization. */
export type KnownActions = {
  /** Returns true if a request was refused, or has its answer: the same is a new one then. */
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

/** The channels that a payment is about: by their ids, or all of a receiver for a token. */
export type OwnedChannels = {
  ids: readonly Hex[];
  /** True if the payment may open one of them. */
  opens: boolean;
  /** True if it only takes out what was deposited before. */
  releases: boolean;
  /** True if any organization may use the payment on them: their shop has signed it, or signs claims itself. */
  isForAll: boolean;
  receiver?: { receiver: Address; token: Address };
  /** The refusal for other organizations. */
  refuse(): Invalid;
};

/** The channel that a payment opens, if none of its id is known, and what it moves. */
export type ChannelRecord = {
  /** `isOwned`: no other organization than the one that opened the channel may deposit into it. */
  opened?: { id: Hex; receiver: Address; token: Address; payer: Address; isOwned?: boolean };
  moves: readonly ChannelMove[];
  /** How much moves in all; undefined of a payment whose amount says it. */
  moved?: bigint | undefined;
};

/** `channel` is its id; for what is paid out, which has no channel, null. `amount` of a claim is the new total. */
export type ChannelMove = {
  kind: "deposit" | "claim" | "refund" | "settle";
  channel: Hex | null;
  amount: bigint;
};

/** The organization that asks, and the channels that organizations have opened on a chain. */
export type ChannelOwners = {
  organizationId: string;
  /** Where the organization is paid; undefined if nowhere. */
  recipient: Address | undefined;
  /** The organizations that opened channels, in the given order; undefined for one that is not known. */
  ownersOf(ids: readonly Hex[]): MaybeLater<readonly (string | undefined)[]>;
  /** Returns true if the organization has opened a channel for this receiver and token. */
  hasReceiver(receiver: Address, token: Address): MaybeLater<boolean>;
};

type MaybeLater<T> = T | Promise<T>;

/** The refusal for an organization that may not do what a payment asks for on channels; undefined if it may. */
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
 * Names a request that can be repeated, such as a claim, by what the organization has asked for before.
 *
 * @param name gives the payment its name: see `Settling.identify`
 * @param find the settlement with an id, of any organization
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
  // Shops act on their own channels: such a request has no payer.
  const payer = sameAddress(payment.payer, payment.payTo) ? undefined : request.payer;
  return { ...request, payer, payment, settlementId: idOf(payment) };
}
