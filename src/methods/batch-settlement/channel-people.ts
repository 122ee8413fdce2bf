import type { channelInvalid } from "../../protocol/channel-reasons.ts";
import { isAddress, isBytes32, sameAddress, uintWord } from "../../protocol/hex.ts";
import type { Finding } from "../../protocol/mistakes.ts";
import { membersOf } from "../../util/json.ts";
import { showValue } from "../../util/text.ts";
import { readAnyNumber } from "../explain-members.ts";
import type { ExplainedMethod, SignatureContext } from "../for-people.ts";
import { permit2Address } from "../permit2-domain.ts";
import { depositNonce, withdrawDelays } from "./channel.ts";
import {
  channelFinding,
  explainClaims,
  explainDeposit,
  explainFloor,
  explainRefund,
  explainVoucher,
} from "./explain-channel.ts";
import { authorizationOf, channelMethods, channelOf, kindOf, voucherOf } from "./payloads.ts";

/** `explain` for scheme "batch-settlement": what buyers and shops have signed, and offers. */
export const channelsForPeople: ExplainedMethod = {
  names: Object.values(channelMethods),
  member: "channelConfig",

  nameOf({ payer }, payload) {
    const { amount, ...deposit } = membersOf(payload.deposit);
    const named = { payer, value: amount, nonce: undefined, nonceSpace: undefined };
    if (kindOf(payload) !== "deposit") return named;
    const permit = authorizationOf({ deposit }, "permit2Authorization");
    if (permit !== undefined) {
      const number = readAnyNumber(membersOf(permit).nonce);
      const nonce = number === undefined ? undefined : (`0x${uintWord(number)}` as const);
      return { ...named, nonce, nonceSpace: permit2Address };
    }
    const { salt } = membersOf(authorizationOf({ deposit }, "erc3009Authorization"));
    const { channelId: id } = membersOf(payload.voucher);
    return { ...named, nonce: isBytes32(id) && isBytes32(salt) ? depositNonce(id, salt) : undefined };
  },

  explainSignature(payment, context: SignatureContext): readonly Finding[] {
    switch (payment.method) {
      case channelMethods.settle:
        return [];
      case channelMethods.claim:
        return explainClaims(payment, context);
      case channelMethods.refund:
        return explainRefund(payment, context);
      case channelMethods.voucher:
        return [
          ...explainVoucher(channelOf(payment), payment, context),
          ...explainFloor(voucherOf(payment), context),
        ];
      default:
        return [...explainDeposit(payment, context), ...explainVoucher(channelOf(payment), payment, context)];
    }
  },

  explainOffer(at, { payTo, extra }, { token, contract }) {
    const { receiverAuthorizer, withdrawDelay, name, version, assetTransferMethod } = membersOf(extra);
    const { least, most } = withdrawDelays;
    const found: Finding[] = [];
    const say = (
      reason: Parameters<typeof channelInvalid>[0],
      member: string,
      facts: { title: string; got: unknown; expected: string },
    ) => found.push(channelFinding(reason, `${at}.${member}`, { ...facts, got: showValue(facts.got) }));
    if (isAddress(payTo) && sameAddress(payTo, contract)) {
      const title = "A channel must not pay the facilitator contract, which forwards nothing of it";
      say("receiver_mismatch", "payTo", { title, got: payTo, expected: "the shop's own wallet" });
    }
    if (!isAddress(receiverAuthorizer) || BigInt(receiverAuthorizer) === 0n) {
      const title = "The offer names nobody who may claim";
      const expected = "the address that signs claims: the shop's, or the one in GET /supported";
      say("receiver_authorizer_mismatch", "extra.receiverAuthorizer", {
        title,
        got: receiverAuthorizer,
        expected,
      });
    }
    const isDelay = typeof withdrawDelay === "number" && withdrawDelay >= least && withdrawDelay <= most;
    if (!isDelay) {
      const title = "The escrow takes no channel with this delay";
      const expected = `a number of seconds from ${least} to ${most}`;
      say("withdraw_delay_out_of_range", "extra.withdrawDelay", { title, got: withdrawDelay, expected });
    }
    if (assetTransferMethod !== "permit2" && (name !== token.name || version !== token.version)) {
      const title = "Deposits are signed for another token than this one";
      const expected = JSON.stringify({ name: token.name, version: token.version });
      say("missing_eip712_domain", "extra", { title, got: { name, version }, expected });
    }
    return found;
  },

  example({ payTo, asset }) {
    const account = `0x${"01".repeat(20)}`;
    const id = `0x${"01".repeat(32)}`;
    const channelConfig = {
      payer: account,
      payerAuthorizer: account,
      receiver: isAddress(payTo) ? payTo : account,
      receiverAuthorizer: account,
      token: isAddress(asset) ? asset : account,
      withdrawDelay: withdrawDelays.least,
      salt: id,
    };
    const voucher = { channelId: id, maxClaimableAmount: "1", signature: `0x${"01".repeat(65)}` };
    return { type: "voucher", channelConfig, voucher };
  },
};
