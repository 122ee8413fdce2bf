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

/* Judges what buyers send: vouchers, and the deposits that bring their first. */

/**
 * Why the contract would not take a voucher's signature: by plain ECDSA of the channel's key, or where it has none by the payer's
 * account or its code. It knows no wallets that are not deployed yet.
 */
export async function refuseVoucherSignature(
  source: Pick<ChannelSource, "network" | "askWallet" | "recover">,
  id: Hex,
  config: ChannelConfig,
  { maxClaimableAmount, signature }: Voucher,
): Promise<Invalid | undefined> {
  const digest = voucherDigest(id, maxClaimableAmount, source.network.chainId);
  const key = voucherKeyOf(config);
  // Where there is code it decides, even if the account's key has signed (EIP-7702).
  const proof = key === undefined ? await source.askWallet(config.payer, digest, signature) : "no_code";
  const signer = source.recover(digest, signature);
  const isSigned = signer !== undefined && sameAddress(signer, key ?? config.payer) && hasUsualV(signature);
  if (proof === "accepted" || (proof === "no_code" && isSigned)) return undefined;
  const by = key === undefined ? `the payer ${config.payer}` : `payerAuthorizer ${key}`;
  return channelInvalid("voucher_signature", ` is not that of ${by} over the voucher`, "voucher.signature");
}

/** The contract takes 27 and 28 alone. */
export function hasUsualV(signature: Hex): boolean {
  return /(1b|1c)$/i.test(signature);
}

/** Why a voucher covers too little, or more than the channel holds. `balance` is what the channel will have. */
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

/** Judges a voucher of a channel that has a deposit, or a buyer's wish to have the rest of it back. */
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

/** The payer's means for a deposit, in the token's smallest unit. `allowance` is that of Permit2, where no approval comes first. */
export type DepositFacts = {
  /** True if the deposit's authorization was used. */
  used: boolean;
  /** True if a transaction is known that made the deposit. */
  isDone: boolean;
  balance: bigint;
  allowance?: bigint | undefined;
  /** Why the approval of Permit2 that came with it is refused. */
  unapproved?: Invalid | undefined;
};

/**
 * Judges a deposit: its voucher has to be good too, and to cover what the seller asks for.
 *
 * @param readFacts asked once its voucher is signed well
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
  // What the payer has is that of the newest block, as for other payments.
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

/** Why Permit2 may not take a deposit. */
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

/** What the state of the chain has against a deposit, by either way. */
export const depositStateRefusals: StateRefusals = (...given) => [
  ...usualStateRefusals(...given),
  refuseAllowance(...given),
];

/** Refuses a deposit that would revert. */
export function depositReverts(why: string): Invalid {
  return channelInvalid("deposit_simulation_failed", `The deposit would revert on chain: ${why}`);
}
