import type { ChannelReason } from "./channel-reasons.ts";

/** The meaning of each batch-settlement reason, and what to do: for `explain` and docs/errors.md. */
export const channelTexts: Readonly<Record<ChannelReason, { meaning: string; fix: string }>> = {
  payload_type: {
    meaning:
      "Deposits, vouchers and refunds are verified; deposits, claims, payouts and refunds with the shop's members are settled.",
    fix: "Send each type where it belongs: a voucher is only verified, and a claim or a settle is only settled.",
  },
  missing_eip712_domain: {
    meaning:
      "A deposit by EIP-3009 is signed for the token's own name and version, which are not in `extra`.",
    fix: "Put the token's name and version into `extra` of the offer.",
  },
  erc3009_authorization_required: {
    meaning: "The offer asks for a deposit by EIP-3009.",
    fix: "Sign a deposit by EIP-3009, or have the shop offer assetTransferMethod permit2.",
  },
  permit2_authorization_required: {
    meaning: "The offer asks for a deposit by Permit2.",
    fix: "Sign a deposit by Permit2, or have the shop offer assetTransferMethod eip3009.",
  },
  channel_id_mismatch: {
    meaning:
      "A channel's id is the EIP-712 hash of its channelConfig in the domain of the escrow on this network.",
    fix: "Compute the id from exactly the channelConfig that is sent, with the chain id of this network, and sign the voucher for it.",
  },
  receiver_mismatch: {
    meaning:
      "The escrow pays the channel's receiver, so this must be payTo of the offer, and a plain wallet: the facilitator contract would forward nothing.",
    fix: "Open a channel whose receiver is the shop's payTo.",
  },
  receiver_authorizer_mismatch: {
    meaning:
      "receiverAuthorizer may claim and refund. It must be the one that the shop offers; the facilitator's own is good for the organization alone that opened the channel.",
    fix: "Open a channel with the receiverAuthorizer in `extra` of the shop's offer. A shop without a key of its own offers the one in GET /supported.",
  },
  token_mismatch: {
    meaning: "The channel, or the permit of its deposit, is for another token than the offer.",
    fix: "Use the asset of the offer as channelConfig.token, and as permitted.token of a permit.",
  },
  withdraw_delay_mismatch: {
    meaning: "The channel's withdrawDelay is not the one that the shop offers.",
    fix: "Take withdrawDelay from `extra` of the offer. Both are numbers of seconds, not text.",
  },
  withdraw_delay_out_of_range: {
    meaning: "The escrow takes delays of 900 to 2592000 seconds: 15 minutes to 30 days.",
    fix: "Offer a withdrawDelay in that range, long enough to claim in.",
  },
  payload_authorization_valid_before: {
    meaning: "The deposit's authorization has expired, or expires too soon to be settled.",
    fix: "Sign the deposit again.",
  },
  payload_authorization_valid_after: {
    meaning: "The deposit's authorization is not valid yet by the chain's clock.",
    fix: "Sign for a time that has begun, such as 0, or wait.",
  },
  eip6492_factory_not_allowed: {
    meaning:
      "The payer is a smart wallet that is not deployed yet, and the facilitator does not call the factory that its signature names.",
    fix: "Deploy the wallet first, or use a factory that the facilitator calls.",
  },
  receive_authorization_signature: {
    meaning:
      "A deposit is a ReceiveWithAuthorization to the collector 0x4020806089470a89826cB9fB1f4059150b550004, with the hash of channel id and salt as its nonce.",
    fix: "Sign ReceiveWithAuthorization in the token's domain: `to` the collector, `value` deposit.amount, and `nonce` keccak256(abi.encode(channelId, salt)).",
  },
  permit2_invalid_spender: {
    meaning: "The permit of a deposit is used by the collector of the escrow.",
    fix: "Sign the permit with the collector 0x4020425FAf3B746C082C2f942b4E5159887B0005 as spender.",
  },
  permit2_amount_mismatch: {
    meaning: "The collector takes exactly the deposit's amount.",
    fix: "Sign a permit whose permitted.amount is deposit.amount.",
  },
  permit2_deadline_expired: {
    meaning: "The permit's deadline has passed, or is too near to settle the deposit.",
    fix: "Sign the deposit again.",
  },
  permit2_invalid_signature: {
    meaning: "The permit is not signed by the channel's payer, with the channel id as its witness.",
    fix: "Sign the permit as channelConfig.payer, in Permit2's domain on this network, with witness { channelId }.",
  },
  permit2_allowance_required: {
    meaning: "The payer has not approved Permit2 to take the deposit from the token.",
    fix: "Have the payer approve Permit2 on the token once, or deposit by EIP-3009.",
  },
  eip2612_owner_mismatch: {
    meaning:
      "The approval of Permit2 that came with the deposit (EIP-2612) is of another account than the payer.",
    fix: "Sign the approval as channelConfig.payer.",
  },
  eip2612_asset_mismatch: {
    meaning: "The approval of Permit2 that came with the deposit (EIP-2612) is for another token.",
    fix: "Sign the approval for the channel's token.",
  },
  eip2612_spender_mismatch: {
    meaning: "The approval that came with the deposit (EIP-2612) must be for Permit2, not for the collector.",
    fix: "Sign the approval with 0x000000000022D473030F116dDEE9F6B43aC78BA3 as spender.",
  },
  eip2612_amount_mismatch: {
    meaning: "The collector takes an approval (EIP-2612) for exactly the deposit.",
    fix: "Sign the approval for deposit.amount, not for the price.",
  },
  eip2612_deadline_expired: {
    meaning: "The approval of Permit2 that came with the deposit (EIP-2612) has expired, or is about to.",
    fix: "Sign the approval again, with the deadline of the deposit's permit.",
  },
  erc20_approval_unavailable: {
    meaning:
      "Permit2 may not take the deposit, and the facilitator does not send the approval that came with it (erc20ApprovalGasSponsoring).",
    fix: "Have the payer approve Permit2 on the token, or ask a facilitator whose GET /supported lists the extension.",
  },
  voucher_signature: {
    meaning:
      "A voucher is signed by payerAuthorizer of the channel, or by the payer if that is zero: Voucher(channelId, maxClaimableAmount) in the domain “x402 Batch Settlement”, version 1, of the escrow on this network.",
    fix: "Sign with that key, for this channel, this amount and this network: 65 bytes, the last one 1b or 1c.",
  },
  insufficient_balance: {
    meaning: "The payer holds fewer tokens than the deposit.",
    fix: "Fund the payer, or deposit less.",
  },
  channel_not_found: {
    meaning: "Nothing is deposited in the channel on this network.",
    fix: "Deposit first. A channel that was refunded in full has to be filled again.",
  },
  cumulative_exceeds_balance: {
    meaning: "The voucher promises more than the channel holds, so it could not be claimed.",
    fix: "Deposit more with the next purchase. After a withdrawal or a refund, start from the balance that the answer names.",
  },
  cumulative_below_claimed: {
    meaning:
      "Vouchers are totals: one must cover all that was claimed of the channel before, and the price of this purchase.",
    fix: "Sign the total that was charged so far plus the price. A client that has lost its state reads it from the shop's 402 or from the chain.",
  },
  deposit_simulation_failed: {
    meaning: "The deposit would revert.",
    fix: "Mend what the message names; a used nonce means that the deposit was made already.",
  },
  authorizer_not_configured: {
    meaning: "The facilitator has no key to sign claims and refunds with (AUTHORIZER_PRIVATE_KEY).",
    fix: "Sign them with the shop's own receiverAuthorizer, or have the operator set the key.",
  },
  authorizer_address_mismatch: {
    meaning:
      "The facilitator signs claims and refunds for the organization alone that opened the channel, and for its own receiverAuthorizer alone.",
    fix: "Ask with the API key that the channel was opened with, or sign with the channel's receiverAuthorizer.",
  },
  claim_simulation_failed: {
    meaning: "A row of the claim would revert. The message names the row and the contract's error.",
    fix: "Claim at most the row's ceiling (ClaimExceedsCeiling) and the channel's balance (ClaimExceedsBalance), with the newest voucher's signature (InvalidSignature).",
  },
  claim_transaction_failed: {
    meaning: "The claim was mined, and a row of it is not claimed.",
    fix: "Claim the rows again that the message names.",
  },
  nothing_to_settle: {
    meaning: "All that was claimed for this receiver is paid out already.",
    fix: "Claim first. If nothing new was charged, there is nothing to do.",
  },
  settle_simulation_failed: {
    meaning:
      "The payout would revert: usually the token is paused, or its issuer has blacklisted the receiver.",
    fix: "Mend what the message names. What was claimed stays claimed.",
  },
  refund_no_balance: {
    meaning: "All that the channel holds is claimed, or will be by the claims of this refund.",
    fix: "There is nothing to give back.",
  },
  refund_simulation_failed: {
    meaning: "The refund would revert, or its refundNonce is not the channel's.",
    fix: "Send the refundNonce of the channel's newest state. A refund that was answered is done: its nonce is used.",
  },
};
