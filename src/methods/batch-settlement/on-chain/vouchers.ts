import type { Chain } from "../../../chain/chain.ts";
import { recoverSigner } from "../../../chain/signing/recover-signer.ts";
import type { NetworkConfig } from "../../../config/serve-config.ts";
import type { Invalid } from "../../../protocol/catalogue.ts";
import { channelInvalid } from "../../../protocol/channel-reasons.ts";
import { type Hex, sameAddress } from "../../../protocol/hex.ts";
import type { SignedPayment } from "../../../protocol/signed-payment.ts";
import type { OwnedChannels } from "../../on-chain/settling.ts";
import { type ChannelConfig, type Voucher, voucherDigest, voucherKeyOf } from "../channel.ts";
import { channelOf } from "../payloads.ts";
import type { ChannelState } from "./channel-state.ts";

/**
 * Why the contract would not take a voucher's signature: by plain ECDSA of the channel's key, or where it has none by the payer's
 * account or its code. It knows no wallets that are not deployed yet.
 *
 * @throws UndeterminedError when the payer's code could not be asked
 */
export async function refuseVoucherSignature(
  chain: Pick<Chain, "network" | "askWallet">,
  id: Hex,
  config: ChannelConfig,
  { maxClaimableAmount, signature }: Voucher,
): Promise<Invalid | undefined> {
  const digest = voucherDigest(id, maxClaimableAmount, chain.network.chainId);
  const key = voucherKeyOf(config);
  // Where there is code it decides, even if the account's key has signed (EIP-7702).
  const proof = key === undefined ? await chain.askWallet(config.payer, digest, signature) : "no_code";
  const signer = recoverSigner(digest, signature);
  const isSigned = signer !== undefined && sameAddress(signer, key ?? config.payer) && hasUsualV(signature);
  if (proof === "accepted" || (proof === "no_code" && isSigned)) return undefined;
  const by = key === undefined ? `the payer ${config.payer}` : `payerAuthorizer ${key}`;
  return channelInvalid("voucher_signature", ` is not that of ${by} over the voucher`, "voucher.signature");
}

/** The contract takes 27 and 28 alone. */
function hasUsualV(signature: Hex): boolean {
  return /(1b|1c)$/i.test(signature);
}

/** Why a voucher covers too little, or more than the channel holds. `balance` is what the channel will have. */
export function refuseAmount(
  { maxClaimableAmount }: Voucher,
  { balance, totalClaimed, price }: Pick<ChannelState, "balance" | "totalClaimed"> & { price: bigint },
  kind: "purchase" | "refund" = "purchase",
): Invalid | undefined {
  const at = "voucher.maxClaimableAmount";
  if (maxClaimableAmount > balance) {
    const fact = ` is ${maxClaimableAmount}, but the channel has ${balance}`;
    return channelInvalid("cumulative_exceeds_balance", fact, at);
  }
  const isRefund = kind === "refund";
  const least = isRefund ? totalClaimed : totalClaimed + (price > 0n ? price : 1n);
  if (maxClaimableAmount >= least) return undefined;
  const fact = ` is ${maxClaimableAmount}, but must be ${least} at least: ${totalClaimed} is claimed already`;
  return channelInvalid("cumulative_below_claimed", fact, at);
}

/**
 * Channels whose claims the facilitator signs are of use to that organization alone which opened them: no other may take a purchase on
 * one, which it could never claim.
 */
export function ownedChannel(
  payment: SignedPayment,
  { receiverAuthorizer }: Pick<NetworkConfig, "receiverAuthorizer">,
  opens: boolean,
): OwnedChannels | undefined {
  const { config, voucher } = channelOf(payment);
  if (receiverAuthorizer === undefined || !sameAddress(config.receiverAuthorizer, receiverAuthorizer))
    return undefined;
  const refuse = () =>
    channelInvalid(
      "receiver_authorizer_mismatch",
      " is the facilitator's, and the channel was not opened with an API key of this organization",
      "channelConfig.receiverAuthorizer",
    );
  return { ids: [voucher.channelId], opens, refuse };
}
