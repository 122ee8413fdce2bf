import { createLocalRpc } from "../../chain/rpc/local-rpc.ts";
import type { ChannelBuyer, SignedPurchase } from "../../methods/batch-settlement/channel-buyer.ts";
import { keepsChannels } from "../../methods/method-lists.ts";
import type { PayerSigner } from "../../methods/permit2/sign-permit.ts";
import type { KeySigner, Offer } from "../../payer/sign-payment.ts";
import { createSerialQueue, type InTurn } from "../../util/concurrency.ts";
import type { Running } from "./description.ts";

type LocalOffer = Omit<Offer<{ chainId: number }>, "resource">;

/** The channels of a payer on the chains of a harness. */
export type LocalChannels = {
  /** Signs for an offer by scheme “batch-settlement”; undefined for other schemes. `now` in unix seconds. */
  sign(offer: LocalOffer & { most?: bigint | undefined }, now: bigint): Promise<SignedPurchase | undefined>;
  /** Makes purchases from channels one after the other, and others at once. */
  inTurn<T>(offer: LocalOffer, work: () => Promise<T>): Promise<T>;
};

/** Makes the channels of a payer, of which nothing is known yet. Their code is loaded with the first purchase. */
export function createLocalChannels(signer: PayerSigner | KeySigner, { networks }: Running): LocalChannels {
  let buyer: Promise<ChannelBuyer> | undefined;
  const queue: InTurn = createSerialQueue();

  async function load(): Promise<ChannelBuyer> {
    const [{ createChannelBuyer }, { recoverSigner }] = await Promise.all([
      import("../../methods/batch-settlement/channel-buyer.ts"),
      import("../../chain/signing/recover-signer.ts"),
    ]);
    return createChannelBuyer(signer, {
      call(chainId, to, data) {
        const network = Object.values(networks).find((one) => one.chainId === chainId);
        if (network === undefined) throw new Error(`no chain ${chainId} runs here`);
        return createLocalRpc(network.rpcUrl).request("eth_call", { to, data }, "latest");
      },
      recover: recoverSigner,
    });
  }

  return {
    async sign(offer, now) {
      if (!keepsChannels(offer.scheme)) return undefined;
      buyer ??= load();
      const { network, method: transfer, validForSeconds, written } = offer;
      const { chainId } = network;
      return (await buyer).sign({
        ...offer,
        chainId,
        transfer,
        extra: written.extra,
        until: now + BigInt(validForSeconds),
      });
    },
    inTurn: (offer, work) => (keepsChannels(offer.scheme) ? queue(work) : work()),
  };
}
