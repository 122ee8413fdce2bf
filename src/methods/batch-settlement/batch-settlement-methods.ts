import { boundPayload } from "../../protocol/bound-payload.ts";
import type { ReasonNames } from "../../protocol/catalogue.ts";
import { type ChannelReason, channelReason } from "../../protocol/channel-reasons.ts";
import type { ServedNetwork, TermsCheck } from "../../protocol/checks.ts";
import { type Hex, keccak256 } from "../../protocol/hex.ts";
import { type Asset, isPaidBy } from "../../protocol/networks.ts";
import type { PaymentWords, SignedPayment } from "../../protocol/signed-payment.ts";
import { propertyOf } from "../../protocol/wire-values.ts";
import { approvalDeadline } from "../approval.ts";
import { digestUnder, domainSeparator } from "../eip712.ts";
import type { MethodExtra, TakenMethod } from "../method.ts";
import { permit2Separator } from "../permit2-domain.ts";
import { claimBatchDigest, permitHash, receiveHash, type SignedDeposit, voucherDigest } from "./channel.ts";
import {
  channelChecks,
  coversPrice,
  depositChecks,
  permit2DepositChecks,
  settledAlone,
  verifiedAlone,
} from "./channel-checks.ts";
import {
  authorizationOf,
  channelMethods,
  channelOf,
  claimOf,
  kindOf,
  payerOf,
  readClaim,
  readDeposit,
  readPermit2Deposit,
  readRefund,
  readSettle,
  readVoucher,
} from "./payloads.ts";

export const scheme = "batch-settlement";

/** The scheme's own reasons for refusals that all methods have. `wallet` is the reason for an undeployed wallet. */
function namesOf(own: {
  signature: ChannelReason;
  wallet?: ChannelReason;
  before: ChannelReason;
  after: ChannelReason;
}): ReasonNames {
  const signature = channelReason(own.signature);
  return {
    invalid_exact_evm_payload_signature: signature,
    invalid_exact_evm_payload_undeployed_smart_wallet: channelReason(own.wallet ?? own.signature),
    invalid_exact_evm_payload_authorization_valid_before: channelReason(own.before),
    invalid_exact_evm_payload_authorization_valid_after: channelReason(own.after),
    insufficient_funds: channelReason("insufficient_balance"),
  };
}

const eip3009At = "deposit.authorization.erc3009Authorization";
const permit2At = "deposit.authorization.permit2Authorization";

const usualWords: PaymentWords = {
  payer: "channelConfig.payer",
  nonce: `${eip3009At}.salt`,
  payTo: "channelConfig.receiver",
  limit: "deposit.amount",
  asset: "channelConfig.token",
  start: "validAfter",
  end: "validBefore",
  startsSaid: "after",
  endsSaid: "before",
  includesBounds: false,
  reasons: namesOf({
    signature: "receive_authorization_signature",
    wallet: "eip6492_factory_not_allowed",
    before: "payload_authorization_valid_before",
    after: "payload_authorization_valid_after",
  }),
  reference: "eip3009",
  judge: "The token",
  domain: ({ name, version }) => `name "${name}", version "${version}"`,
};

/** The scheme's own reasons for refusing an EIP-2612 approval. */
const approvalReasons: ReasonNames = {
  permit2_allowance_required: channelReason("permit2_allowance_required"),
  eip2612_from_mismatch: channelReason("eip2612_owner_mismatch"),
  eip2612_asset_mismatch: channelReason("eip2612_asset_mismatch"),
  eip2612_spender_not_permit2: channelReason("eip2612_spender_mismatch"),
  permit2_2612_amount_mismatch: channelReason("eip2612_amount_mismatch"),
  eip2612_deadline_expired: channelReason("eip2612_deadline_expired"),
};

const permit2Words: PaymentWords = {
  ...usualWords,
  nonce: `${permit2At}.nonce`,
  end: "deadline",
  startsSaid: "from",
  endsSaid: "until",
  includesBounds: true,
  reasons: {
    ...namesOf({
      signature: "permit2_invalid_signature",
      before: "permit2_deadline_expired",
      after: "permit2_deadline_expired",
    }),
    ...approvalReasons,
  },
  reference: "permit2",
  judge: "Permit2",
  domain: () => 'domain "Permit2"',
};

const nothingMore = () => Promise.resolve("Sign again, for this channel and this network");

/** Channels pay only plain receivers, because the facilitator contract would not forward what it gets from them. */
function offered({ payTo = "contract", receiverAuthorizer, assets }: ServedNetwork): MethodExtra | undefined {
  const isPaid = assets.some((asset) => isPaidBy(asset, "eip3009") || isPaidBy(asset, "permit2"));
  if (payTo === "contract" || !isPaid) return undefined;
  return { ...(receiverAuthorizer !== undefined && { receiverAuthorizer }) };
}

const common = {
  scheme,
  versions: [2],
  amounts: "own",
  takesLess: false,
  payerOf,
  describeWrongSignature: nothingMore,
} as const;

/** The fields of a deposit that its payer has signed, for the token or for Permit2. */
function signedDeposit(payment: SignedPayment): SignedDeposit {
  const { payer: from, asset: token, limit: amount, nonce } = payment;
  return { from, token, amount, nonce, channel: channelOf(payment).voucher.channelId };
}

/** A deposit into a channel with EIP-3009; the first one opens the channel. */
export const deposit: TakenMethod<typeof scheme, "eip3009"> = {
  ...common,
  name: channelMethods.deposit,
  transfer: "eip3009",
  deploysWallets: true,
  boundPayload,
  checkPrice: coversPrice,
  words: usualWords,
  checks: depositChecks,
  owns: (payload) =>
    kindOf(payload) === "deposit" && authorizationOf(payload, "permit2Authorization") === undefined,
  read: readDeposit,
  extra: offered,
  digester(asset: Asset, chainId: number) {
    const separator = domainSeparator(asset, chainId);
    return (payment) => {
      const { first, last } = payment.window;
      const times = { validAfter: first - 1n, validBefore: last + 1n };
      return digestUnder(separator, receiveHash(signedDeposit(payment), times));
    };
  },
};

/** The same with Permit2. */
export const permit2Deposit: TakenMethod<typeof scheme, "permit2"> = {
  ...common,
  name: channelMethods.permit2Deposit,
  transfer: "permit2",
  boundPayload,
  checkPrice: coversPrice,
  words: permit2Words,
  checks: permit2DepositChecks,
  owns: (payload) =>
    kindOf(payload) === "deposit" && authorizationOf(payload, "permit2Authorization") !== undefined,
  read: readPermit2Deposit,
  extra: () => undefined,
  approvalDeadline,
  digester(_asset, chainId) {
    const separator = permit2Separator(chainId);
    return (payment) => digestUnder(separator, permitHash(signedDeposit(payment), payment.window.last));
  },
};

type Action = Pick<TakenMethod, "name" | "owns" | "read"> & {
  words?: PaymentWords;
  checks: readonly TermsCheck[];
  digest(payment: SignedPayment, chainId: number): Hex;
};

/** Creates a method for actions that move only tokens deposited before, or none. */
function createAction({ digest, ...own }: Action): TakenMethod<typeof scheme, "any"> {
  return {
    ...common,
    words: usualWords,
    ...own,
    transfer: "any",
    checksSignatures: true,
    extra: () => undefined,
    digester: (_asset, chainId) => (payment) => digest(payment, chainId),
  };
}

/** The digest of an action by its content, which its nonce identifies: its signatures may be the facilitator's. */
const contentDigest = ({ nonce }: SignedPayment): Hex => keccak256(nonce);

/** Returns true if a refund has the fields that its shop adds. */
const isEnriched = (payload: unknown) => propertyOf(payload, "refundNonce") !== undefined;

/** A voucher, or a buyer's request for a refund: both are only verified, and the shop does the rest. */
const voucher = createAction({
  name: channelMethods.voucher,
  checks: [verifiedAlone, ...channelChecks],
  owns: (payload) => kindOf(payload) === "voucher" || (kindOf(payload) === "refund" && !isEnriched(payload)),
  read: readVoucher,
  digest(payment, chainId) {
    const { voucher: signed } = channelOf(payment);
    return voucherDigest(signed.channelId, signed.maxClaimableAmount, chainId);
  },
});

/** The field names for a shop's own requests, in which the shop's address stands for the payer. */
const wordsOfShop = (receiver: string): PaymentWords => ({ ...usualWords, payer: receiver, payTo: receiver });

const claim = createAction({
  name: channelMethods.claim,
  words: wordsOfShop("claims[0].voucher.channel.receiver"),
  checks: [settledAlone],
  owns: (payload) => kindOf(payload) === "claim",
  read: readClaim,
  digest: (payment, chainId) => claimBatchDigest(claimOf(payment).claims, chainId),
});

const settle = createAction({
  name: channelMethods.settle,
  words: { ...wordsOfShop("receiver"), asset: "token" },
  checks: [settledAlone],
  owns: (payload) => kindOf(payload) === "settle",
  read: readSettle,
  digest: contentDigest,
});

const refund = createAction({
  name: channelMethods.refund,
  checks: [settledAlone],
  owns: (payload) => kindOf(payload) === "refund" && isEnriched(payload),
  read: readRefund,
  digest: contentDigest,
});

/**
 * The methods of scheme "batch-settlement" that the service accepts. The first that owns a payload reads it; a payload that
 * none owns is refused by the last.
 */
export const batchSettlementMethods: readonly TakenMethod[] = [
  deposit,
  permit2Deposit,
  claim,
  settle,
  refund,
  voucher,
];
