import type { Invalid } from "../../protocol/catalogue.ts";
import { channelInvalid } from "../../protocol/channel-reasons.ts";
import { type Hex, sameAddress } from "../../protocol/hex.ts";
import type { SignedPayment } from "../../protocol/signed-payment.ts";
import type { AnswerExtra } from "../../protocol/write-answers.ts";
import { refuseAllowance } from "../approval.ts";
import { approvalTransactionOf } from "../approval-transaction.ts";
import { type StateRefusals, usualStateRefusals } from "../payment-state.ts";
import { permit2Address } from "../permit2-domain.ts";
import { type ChannelConfig, type Voucher, voucherDigest, voucherKeyOf } from "./channel.ts";
import { type ChannelSource, type ChannelState, readChannel, stateJson } from "./channel-source.ts";
import { depositOf, voucherOf } from "./payloads.ts";

/* Judges what buyers send: vouchers, and deposits with their first voucher. */

/**
 * Why the contract would not accept a voucher's signature. It accepts plain ECDSA by the channel's key or, without such a
 * key, a signature by the payer's account or its code. It does not support undeployed wallets.
 */
export async function refuseVoucherSignature(
  source: Pick<ChannelSource, "network" | "askWallet" | "recover">,
  id: Hex,
  config: ChannelConfig,
  { maxClaimableAmount, signature }: Voucher,
): Promise<Invalid | undefined> {
  const digest = voucherDigest(id, maxClaimableAmount, source.network.chainId);
  const key = voucherKeyOf(config);
  // If the account has code, the code decides, even if the account's key has signed (EIP-7702).
  const proof = key === undefined ? await source.askWallet(config.payer, digest, signature) : "no_code";
  const signer = source.recover(digest, signature);
  const isSigned = signer !== undefined && sameAddress(signer, key ?? config.payer) && hasUsualV(signature);
  if (proof === "accepted" || (proof === "no_code" && isSigned)) return undefined;
  const by = key === undefined ? `the payer ${config.payer}` : `payerAuthorizer ${key}`;
  return channelInvalid("voucher_signature", ` is not that of ${by} over the voucher`, "voucher.signature");
}

/** Returns true if v is 27 or 28: the contract accepts no other values. */
export function hasUsualV(signature: Hex): boolean {
  return /(1b|1c)$/i.test(signature);
}

/** Refuses a voucher for too little, or for more than the channel holds. `balance` includes a deposit that comes first. */
function refuseAmount(
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

/** Judges a voucher for a channel that has a balance, or a buyer's refund request. */
export async function judgeVoucher(
  source: ChannelSource,
  payment: SignedPayment,
  price: bigint,
): Promise<Invalid | AnswerExtra> {
  const { config, voucher, isRefund } = voucherOf(payment);
  const { channelId } = voucher;
  const wrong = await refuseVoucherSignature(source, channelId, config, voucher);
  if (wrong !== undefined) return wrong;
  const state = await readChannel(source, channelId, "confirmed");
  if (state.balance === 0n) {
    return channelInvalid(
      "channel_not_found",
      ` ${channelId} has no balance on this network`,
      "voucher.channelId",
    );
  }
  const little = refuseAmount(voucher, { ...state, price }, isRefund ? "refund" : "purchase");
  return little ?? { extra: stateJson(channelId, state) };
}

/** The payer's funds, in the token's smallest unit. `allowance` is Permit2's; undefined if an approval comes first. */
export type DepositFacts = {
  /** True if the deposit's authorization was used. */
  used: boolean;
  /** True if the transaction that made the deposit is known. */
  isDone: boolean;
  balance: bigint;
  allowance?: bigint | undefined;
  /** The refusal of the Permit2 approval that came with it. */
  unapproved?: Invalid | undefined;
};

/**
 * Judges a deposit. Its voucher must be valid too, and cover the seller's price.
 *
 * @param readFacts only called if the voucher's signature is valid
 */
export async function judgeDeposit<Facts extends DepositFacts>(
  source: ChannelSource,
  payment: SignedPayment,
  price: bigint,
  readFacts: () => Facts | Promise<Facts>,
): Promise<Invalid | { facts: Facts; extra: ReturnType<typeof stateJson> }> {
  const { config, voucher } = depositOf(payment);
  const { channelId } = voucher;
  const wrong = await refuseVoucherSignature(source, channelId, config, voucher);
  if (wrong !== undefined) return wrong;
  // The payer's funds are read at the newest block, as for other payments.
  const [state, facts] = await Promise.all([readChannel(source, channelId, "confirmed"), readFacts()]);
  const { used, isDone, balance } = facts;
  const { limit } = payment;
  if (!used && balance < limit) {
    const fact = ` is ${limit}, but the payer has ${balance}`;
    return channelInvalid("insufficient_balance", fact, "deposit.amount");
  }
  const total = state.balance + (isDone ? 0n : limit);
  const little = refuseAmount(voucher, { balance: total, totalClaimed: state.totalClaimed, price });
  const wanting = little ?? (used ? undefined : refuseUnapproved(payment, facts));
  return wanting ?? { facts, extra: stateJson(channelId, state) };
}

/** Refuses a deposit that Permit2 is not allowed to take. */
function refuseUnapproved(
  payment: SignedPayment,
  { allowance, unapproved }: DepositFacts,
): Invalid | undefined {
  const { limit } = payment;
  if (unapproved !== undefined || allowance === undefined || allowance >= limit) return unapproved;
  const fact = `The payer allows Permit2 to take ${allowance} of the token, but ${limit} is deposited`;
  return approvalTransactionOf(payment) === undefined
    ? channelInvalid(
        "permit2_allowance_required",
        `${fact}. Let the payer approve Permit2 (${permit2Address}) on the token`,
      )
    : channelInvalid(
        "erc20_approval_unavailable",
        `${fact}, and this facilitator sends no approvals that payers have signed as transactions`,
      );
}

/** The refusals of a deposit by the chain's state, for both kinds of deposit. */
export const depositStateRefusals: StateRefusals = (...given) => [
  ...usualStateRefusals(...given),
  refuseAllowance(...given),
];

/** Refuses a deposit that would revert. */
export function depositReverts(why: string): Invalid {
  return channelInvalid("deposit_simulation_failed", `The deposit would revert on chain: ${why}`);
}
