import { channelInvalid } from "../../protocol/channel-reasons.ts";
import type { TermsCheck } from "../../protocol/checks.ts";
import { isAddress, sameAddress } from "../../protocol/hex.ts";
import { goesStraight } from "../../protocol/signed-payment.ts";
import { propertyOf, zeroAddress } from "../../protocol/wire-values.ts";
import { channelId, withdrawDelays } from "./channel.ts";
import { permit2CollectorAddress } from "./contracts.ts";
import { channelOf, depositOf } from "./payloads.ts";

/* The checks that need only the request, in the order of the specification. */

/** The channel must match its id and the requirements. */
export const channelChecks: readonly TermsCheck[] = [
  ({ payment, knownNetwork: { chainId } }) => {
    const { config, voucher } = channelOf(payment);
    const id = channelId(config, chainId);
    if (id === voucher.channelId) return undefined;
    const fact = ` is ${voucher.channelId}, but channelConfig makes ${id} on this network`;
    return channelInvalid("channel_id_mismatch", fact, "voucher.channelId");
  },
  ({ payment, requirements: { payTo = zeroAddress } }, network) => {
    const { receiver } = channelOf(payment).config;
    const fact = ` is ${receiver}, but payTo of the requirements is ${payTo}`;
    if (!sameAddress(receiver, payTo))
      return channelInvalid("receiver_mismatch", fact, "channelConfig.receiver");
    // The facilitator contract would not forward the money.
    return goesStraight(payment, network)
      ? undefined
      : channelInvalid(
          "receiver_mismatch",
          " must not be the facilitator contract",
          "channelConfig.receiver",
        );
  },
  ({ payment, requirements: { extra } }) => {
    const { receiverAuthorizer } = channelOf(payment).config;
    const offered = propertyOf(extra, "receiverAuthorizer");
    const isOffered = isAddress(offered) && BigInt(offered) !== 0n;
    if (isOffered && sameAddress(receiverAuthorizer, offered)) return undefined;
    const expected = isOffered ? `${offered}, as extra of the requirements` : "in extra of the requirements";
    const fact = ` is ${receiverAuthorizer}, but must be ${expected}`;
    return channelInvalid("receiver_authorizer_mismatch", fact, "channelConfig.receiverAuthorizer");
  },
  ({ payment, requirements: { asset } }) => {
    const { token } = channelOf(payment).config;
    const fact = ` is ${token}, but the requirements ask for ${asset}`;
    return sameAddress(token, asset)
      ? undefined
      : channelInvalid("token_mismatch", fact, "channelConfig.token");
  },
  ({ payment, requirements: { extra } }) => {
    const { withdrawDelay } = channelOf(payment).config;
    const offered = propertyOf(extra, "withdrawDelay");
    const fact = ` is ${withdrawDelay}, but must be that in extra of the requirements`;
    return withdrawDelay === offered
      ? undefined
      : channelInvalid("withdraw_delay_mismatch", fact, "channelConfig.withdrawDelay");
  },
  ({ payment }) => {
    const { withdrawDelay } = channelOf(payment).config;
    const { least, most } = withdrawDelays;
    const fact = ` is ${withdrawDelay}, but must be from ${least} to ${most} seconds`;
    return withdrawDelay >= least && withdrawDelay <= most
      ? undefined
      : channelInvalid("withdraw_delay_out_of_range", fact, "channelConfig.withdrawDelay");
  },
];

/** A buyer's vouchers can only be verified. Shops keep them, and settle claims. */
export const verifiedAlone: TermsCheck = (_request, _network, { operation }) =>
  operation === "verify"
    ? undefined
    : channelInvalid(
        "payload_type",
        " of a voucher is verified, and not settled; a refund needs the members refundNonce and claims",
        "type",
      );

/** A shop's actions can only be settled. */
export const settledAlone: TermsCheck = (_request, _network, { operation }) =>
  operation === "settle"
    ? undefined
    : channelInvalid("payload_type", " is one of a shop, which settle takes alone", "type");

/** A deposit's voucher must cover at least its purchase, whatever was claimed before; even if the deposit is pending. */
export const coversPrice: TermsCheck = ({ payment, requirements: { amount } }) => {
  const { maxClaimableAmount } = depositOf(payment).voucher;
  const fact = ` is ${maxClaimableAmount}, but must be ${amount} at least`;
  return maxClaimableAmount >= amount
    ? undefined
    : channelInvalid("cumulative_below_claimed", fact, "voucher.maxClaimableAmount");
};

const transferOf = (extra: unknown) => propertyOf(extra, "assetTransferMethod");

/** The checks of EIP-3009 deposits. */
export const depositChecks: readonly TermsCheck[] = [
  ...channelChecks,
  ({ requirements: { extra } }) =>
    transferOf(extra) === "permit2"
      ? channelInvalid(
          "payload_type",
          " must be permit2Authorization, by assetTransferMethod of the requirements",
          "deposit.authorization",
        )
      : undefined,
  ({ requirements: { extra } }) =>
    propertyOf(extra, "name") && propertyOf(extra, "version")
      ? undefined
      : channelInvalid(
          "missing_eip712_domain",
          "paymentRequirements.extra must have name and version of the token's domain",
        ),
];

/** The checks of Permit2 deposits. */
export const permit2DepositChecks: readonly TermsCheck[] = [
  ...channelChecks,
  ({ requirements: { extra } }) =>
    transferOf(extra) === "eip3009"
      ? channelInvalid(
          "erc3009_authorization_required",
          " must be erc3009Authorization, by assetTransferMethod of the requirements",
          "deposit.authorization",
        )
      : undefined,
  ({ payment }) => {
    const { config, permit, voucher } = depositOf(payment);
    if (permit === undefined) throw new Error("a deposit by Permit2 has no permit");
    const at = (member: string) => `deposit.authorization.permit2Authorization.${member}`;
    const { from, spender, token, amount } = permit;
    if (!sameAddress(from, config.payer))
      return channelInvalid("permit2_invalid_signature", " is not the payer of the channel", at("from"));
    if (!sameAddress(spender, permit2CollectorAddress))
      return channelInvalid(
        "permit2_invalid_spender",
        ` is ${spender}, but must be ${permit2CollectorAddress}`,
        at("spender"),
      );
    if (!sameAddress(token, config.token))
      return channelInvalid("token_mismatch", " is not the token of the channel", at("permitted.token"));
    if (amount !== payment.limit)
      return channelInvalid(
        "permit2_amount_mismatch",
        ` is ${amount}, but deposit.amount is ${payment.limit}`,
        at("permitted.amount"),
      );
    return permit.channelId === voucher.channelId
      ? undefined
      : channelInvalid("channel_id_mismatch", " is not the channel's id", at("witness.channelId"));
  },
];
