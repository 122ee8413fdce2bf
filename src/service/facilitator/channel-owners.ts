import type { NetworkConfig } from "../../config/serve-config.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { OwnedChannels } from "../../methods/actions.ts";
import type { Settling } from "../../methods/on-chain/settling.ts";
import type { Invalid } from "../../protocol/catalogue.ts";
import { sameAddress } from "../../protocol/hex.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { isOpen } from "../../protocol/settlement-rules.ts";
import { settlementId } from "../../protocol/signed-payment.ts";
import type { Caller } from "../organizations/organizations.ts";
import type { FacilitatorContext } from "./context.ts";

/*
 * Channels, of which one payment method is about: who may use them, and which request for one is the same as an earlier one.
 */

/** Why an organization may not do what a payment asks for on a channel; undefined where it may. Null is a caller without a key. */
export async function refuseForeignChannel(
  { channels }: Pick<Ledger, "channels">,
  { ids, opens, receiver, refuse }: OwnedChannels,
  caller: Caller | null,
  { chainId, name }: NetworkConfig,
): Promise<Invalid | undefined> {
  if (caller === null) return refuse();
  const { id, recipients } = caller.organization;
  const owners = await channels.ownersOf(chainId, ids);
  const isOwn = owners.every((owner) => (owner === undefined ? opens : owner === id));
  if (!isOwn) return refuse();
  if (receiver === undefined) return undefined;
  const recipient = recipients[name];
  if (recipient !== undefined && sameAddress(recipient, receiver.receiver)) return undefined;
  const of = { chainId, receiver: receiver.receiver, asset: receiver.token };
  return (await channels.hasReceiver(id, of)) ? undefined : refuse();
}

/** Settlements for one receiver that are looked at for a request that may be the same. */
const mostRecent = 20;

/**
 * The request as one that has an id of its own among all for the same: see {@link Settling.identify}.
 *
 * @throws UndeterminedError when the chain could not be asked
 */
export async function identifyRequest(
  identify: NonNullable<Settling["identify"]>,
  request: PaymentRequest,
  { organization }: Caller,
  { networks, ledger }: Pick<FacilitatorContext, "networks" | "ledger">,
): Promise<PaymentRequest> {
  const { knownNetwork, payment: asked } = request;
  const lanes = networks.get(knownNetwork.name);
  if (lanes === undefined) return request;
  const [{ chain }] = lanes;
  const organizationId = organization.id;
  const idOf = ({ nonceSpace, payer, nonce }: typeof asked) =>
    settlementId(knownNetwork.chainId, nonceSpace, payer, nonce);
  const payment = await identify(chain, asked, {
    async isClosed(candidate) {
      const settlement = await ledger.claims.find(idOf(candidate));
      if (settlement === null) return false;
      return settlement.organizationId !== organizationId || !isOpen(settlement);
    },
    async recent() {
      const filter = { organizationId, network: knownNetwork.name, payer: asked.payer };
      const { settlements } = await ledger.claims.list(filter, { limit: mostRecent });
      return settlements.map((settlement) => ({ ...settlement, isOpen: isOpen(settlement) }));
    },
  });
  // What a shop does for itself has no payer.
  const payer = sameAddress(payment.payer, payment.payTo) ? undefined : request.payer;
  return { ...request, payer, payment, settlementId: idOf(payment) };
}
