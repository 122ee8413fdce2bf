import { createLocalRpc } from "../../chain/rpc/local-rpc.ts";
import type { ChannelBuyer, SignedPurchase } from "../../methods/batch-settlement/channel-buyer.ts";
import { keepsChannels } from "../../methods/method-lists.ts";
import type { PayerSigner } from "../../methods/permit2/sign-permit.ts";
import type { KeySigner, Offer } from "../../payer/sign-payment.ts";
import { createSerialQueue, type InTurn } from "../../util/concurrency.ts";
import type { Running } from "./description.ts";

type LocalOffer = Omit<Offer<{ chainId: number }>, "resource">;

/** A payer's payment channels on the chains of a harness. */
export type LocalChannels = {
  /** Signs for an offer with scheme “batch-settlement”; undefined for other schemes. `now` is in unix seconds. */
  sign(offer: LocalOffer & { most?: bigint | undefined }, now: bigint): Promise<SignedPurchase | undefined>;
  /** Runs purchases from channels one after the other, and all others immediately. */
  inTurn<T>(offer: LocalOffer, work: () => Promise<T>): Promise<T>;
};

/** Creates the channels of a payer, initially none. Their code is loaded with the first purchase. */
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
