import type { Invalid } from "../../protocol/catalogue.ts";
import { channelInvalid } from "../../protocol/channel-reasons.ts";
import { sameAddress } from "../../protocol/hex.ts";
import type { SignedPayment } from "../../protocol/signed-payment.ts";
import type { OwnedChannels } from "../actions.ts";
import { channelId } from "./channel.ts";
import type { ChannelSource } from "./channel-source.ts";
import { channelMethods, channelOf, claimOf, refundOf, voucherOf } from "./payloads.ts";

/** The channels that a payment concerns, and if only the organization that opened them may submit it. */
export function ownedChannels(
  payment: SignedPayment,
  network: Pick<ChannelSource["network"], "chainId" | "authorizers">,
): OwnedChannels {
  const { chainId } = network;
  switch (payment.method) {
    case channelMethods.claim: {
      const { claims, signature } = claimOf(payment);
      const ids = claims.map(({ channel }) => channelId(channel, chainId));
      return { ids, opens: false, releases: true, isForAll: signature !== "0x", refuse: refuseStranger };
    }
    case channelMethods.refund: {
      const { config, signature, claims, claimSignature } = refundOf(payment);
      const isForAll = signature !== "0x" && (claims.length === 0 || claimSignature !== "0x");
      return {
        ids: [channelId(config, chainId)],
        opens: false,
        releases: true,
        isForAll,
        refuse: refuseStranger,
      };
    }
    case channelMethods.settle:
      return {
        ids: [],
        opens: false,
        releases: true,
        isForAll: false,
        receiver: { receiver: payment.payTo, token: payment.asset },
        // A payout has no signature, so signing again would not help.
        refuse: () => ({
          ...channelInvalid(
            "receiver_mismatch",
            " has no channel that this organization has opened",
            "receiver",
          ),
          situation: "pay_to_not_accepted",
        }),
      };
    default:
      return ownedPurchase(payment, network);
  }
}

/**
 * If the facilitator signs a channel's claims, only the organization that opened the channel may use it. Any other could
 * never claim a purchase that it accepted.
 */
function ownedPurchase(
  payment: SignedPayment,
  { authorizers = [] }: Pick<ChannelSource["network"], "authorizers">,
): OwnedChannels {
  const { config, voucher } = channelOf(payment);
  const isVoucher = payment.method === channelMethods.voucher;
  return {
    ids: [voucher.channelId],
    opens: !isVoucher,
    releases: isVoucher && voucherOf(payment).isRefund,
    isForAll: !authorizers.some(({ address }) => sameAddress(address, config.receiverAuthorizer)),
    refuse: () =>
      channelInvalid(
        "receiver_authorizer_mismatch",
        " is the facilitator's, and the channel was not opened with an API key of this organization",
        "channelConfig.receiverAuthorizer",
      ),
  };
}

/** Refuses an organization that did not open the channel and does not have the shop's own signature. */
function refuseStranger(): Invalid {
  return channelInvalid(
    "authorizer_address_mismatch",
    "A channel was not opened with an API key of this organization: claims and refunds of others need the signature of receiverAuthorizer",
  );
}
