import type { PaymentUse } from "../../methods/on-chain/settling.ts";
import { findPaymentUse } from "../../observe/capture/chain-questions.ts";
import type { Address, Hex } from "../../protocol/hex.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import type { SignedPayment } from "../../protocol/signed-payment.ts";
import { askHarness } from "./find-harness.ts";
import { askNode } from "./readable-chain.ts";

/** An authorization by what its token knows it by. */
export type UsableAuthorization = {
  network: NetworkName;
  asset: Address;
  payment: Pick<SignedPayment, "payer" | "nonce">;
  settlementId: Hex;
};

/**
 * How the chain of an `up` says that an authorization was used or cancelled, by anyone.
 *
 * @param origin such as `http://127.0.0.1:4402`, without `/v1`
 * @returns null when it is unused; undefined when no chain can be asked there, as at `mock` and `serve`
 */
export async function askUse(
  origin: string,
  { network, asset, payment, settlementId }: UsableAuthorization,
): Promise<PaymentUse | null | undefined> {
  try {
    const chain = (await askHarness(origin))?.networks[network];
    if (chain === undefined) return undefined;
    const { chainId, rpcUrl } = chain;
    const readable = {
      network: { name: network, chainId },
      asset: { ...chain.asset, address: asset },
      ask: askNode(rpcUrl),
    };
    return (await findPaymentUse(readable, { payment, settlementId })) ?? null;
  } catch {
    // Its nodes may listen on another machine than this, or the token is none.
    return undefined;
  }
}
