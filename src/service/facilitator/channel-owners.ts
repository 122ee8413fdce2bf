import type { NetworkConfig } from "../../config/serve-config.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import {
  type ChannelOwners,
  hasOpened,
  nameRequest,
  type OwnedChannels,
  refuseForeign,
} from "../../methods/actions.ts";
import type { Settling } from "../../methods/on-chain/settling.ts";
import type { Invalid } from "../../protocol/catalogue.ts";
import { sameAddress } from "../../protocol/hex.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { isOpen } from "../../protocol/settlement-rules.ts";
import type { SignedPayment } from "../../protocol/signed-payment.ts";
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

/**
 * The network as a payment is judged on it: what an organization has charged on channels that it opened stays its own, whatever
 * receivers it may be paid at now.
 */
export async function withOpenChannels(
  network: NetworkConfig,
  payment: SignedPayment,
  caller: Caller | null,
  { ledger, ways }: Pick<FacilitatorContext, "ledger" | "ways">,
): Promise<NetworkConfig> {
  if (caller === null || network.payTo === "any") return network;
  const recipient = caller.organization.recipients[network.name];
  const isAccepted = network.payTo === "recipients" && recipient && sameAddress(payment.payTo, recipient);
  const owned = isAccepted ? undefined : ways.settlingOf(payment.method).ownedBy?.(payment, network);
  if (owned === undefined || owned.opens) return network;
  const isOpened = await hasOpened(owned, ownersFor(ledger.channels, caller, network.chainId));
  return isOpened ? { ...network, payTo: "any" } : network;
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
