import type { NetworkConfig } from "../../config/serve-config.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { type ChannelOwners, nameRequest, type OwnedChannels, refuseForeign } from "../../methods/actions.ts";
import type { Settling } from "../../methods/on-chain/settling.ts";
import type { Invalid } from "../../protocol/catalogue.ts";
import type { Address } from "../../protocol/hex.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { isOpen } from "../../protocol/settlement-rules.ts";
import type { Caller } from "../organizations/organizations.ts";
import type { FacilitatorContext } from "./context.ts";

/* What the ledger says about channels and earlier requests, for the rules in `methods/actions.ts`. */

/** Why an organization may not do what a payment asks for on a channel; undefined if it may. Null is a caller without a key. */
export async function refuseForeignChannel(
  { channels }: Pick<Ledger, "channels">,
  owned: OwnedChannels,
  caller: Caller | null,
  { chainId, name }: NetworkConfig,
): Promise<Invalid | undefined> {
  if (caller === null) return owned.refuse();
  const { id, recipients } = caller.organization;
  return refuseForeign(owned, ownersFor(channels, chainId, id, recipients[name]));
}

/** Returns true if all channels were opened with an API key of the organization, as the ledger knows. */
export async function hasOpened(
  { channels }: Pick<Ledger, "channels">,
  owned: OwnedChannels,
  { organization: { id } }: Caller,
  chainId: number,
): Promise<boolean> {
  return (await refuseForeign(owned, ownersFor(channels, chainId, id))) === undefined;
}

function ownersFor(
  channels: Ledger["channels"],
  chainId: number,
  organizationId: string,
  recipient?: Address,
): ChannelOwners {
  return {
    organizationId,
    recipient,
    ownersOf: (ids) => channels.ownersOf(chainId, ids),
    hasReceiver: (receiver, asset) => channels.hasReceiver(organizationId, { chainId, receiver, asset }),
  };
}

/** Settlements for one receiver that are looked at for a request that may be the same. */
const mostRecent = 20;

/**
 * Names a request that can be repeated: see {@link Settling.identify}.
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
