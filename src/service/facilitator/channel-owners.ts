import type { NetworkConfig } from "../../config/serve-config.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { type ChannelOwners, nameRequest, type OwnedChannels, refuseForeign } from "../../methods/actions.ts";
import type { Settling } from "../../methods/on-chain/settling.ts";
import type { Invalid } from "../../protocol/catalogue.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { isOpen } from "../../protocol/settlement-rules.ts";
import type { Caller } from "../organizations/organizations.ts";
import type { FacilitatorContext } from "./context.ts";

/* What the ledger knows about channels and earlier requests, for the rules in `methods/actions.ts`. */

/** Returns the refusal if an organization may not do to a channel what a payment asks for. A null caller has no key. */
export async function refuseForeignChannel(
  { channels }: Pick<Ledger, "channels">,
  owned: OwnedChannels,
  caller: Caller | null,
  { chainId, name }: NetworkConfig,
): Promise<Invalid | undefined> {
  if (caller === null) return owned.isForAll ? undefined : owned.refuse();
  const { recipients } = caller.organization;
  return refuseForeign(owned, { recipient: recipients[name], ...ownersFor(channels, caller, chainId) });
}

function ownersFor(
  channels: Ledger["channels"],
  { organization: { id: organizationId } }: Caller,
  chainId: number,
): Omit<ChannelOwners, "recipient"> {
  return {
    organizationId,
    ownersOf: (ids) => channels.ownersOf(chainId, ids),
    hasReceiver: (receiver, asset) => channels.hasReceiver(organizationId, { chainId, receiver, asset }),
  };
}

/** Returns true if an organization has opened every channel that a payment is about. */
export async function hasOpened(
  { channels }: Pick<Ledger, "channels">,
  { ids, receiver: of }: OwnedChannels,
  caller: Caller,
  chainId: number,
): Promise<boolean> {
  const { organizationId, ownersOf, hasReceiver } = ownersFor(channels, caller, chainId);
  if (of !== undefined) return hasReceiver(of.receiver, of.token);
  return (await ownersOf(ids)).every((owner) => owner === organizationId);
}

/** How many recent settlements of a receiver are compared with a request that may be a repeat. */
const mostRecent = 20;

/**
 * Identifies a request that can be repeated: see {@link Settling.identify}.
 *
 * @throws UndeterminedError when the chain could not be asked
 */
export async function identifyRequest(
  identify: NonNullable<Settling["identify"]>,
  request: PaymentRequest,
  { organization: { id: organizationId } }: Caller,
  { networks, ledger: { claims } }: Pick<FacilitatorContext, "networks" | "ledger">,
): Promise<PaymentRequest> {
  const network = request.knownNetwork.name;
  const chain = networks.get(network)?.[0].chain;
  return nameRequest(request, organizationId, {
    name: (payment, known) => identify(chain, payment, known),
    find: (id) => claims.find(id),
    async recent() {
      const filter = { organizationId, network, payer: request.payment.payer };
      const { settlements } = await claims.list(filter, { limit: mostRecent });
      return settlements.map((settlement) => ({ ...settlement, isOpen: isOpen(settlement) }));
    },
  });
}
