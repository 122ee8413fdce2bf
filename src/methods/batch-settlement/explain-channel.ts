import { type ChannelReason, channelInvalid, channelReason } from "../../protocol/channel-reasons.ts";
import { channelTexts } from "../../protocol/channel-texts.ts";
import {
  type Address,
  addressWord,
  checksumAddress,
  type Hex,
  keccak256,
  keccak256Text,
  sameAddress,
  uintWord,
} from "../../protocol/hex.ts";
import type { Finding } from "../../protocol/mistakes.ts";
import { builtInNetworks } from "../../protocol/networks.ts";
import { isErc6492, type SignedPayment } from "../../protocol/signed-payment.ts";
import { plural } from "../../protocol/token-units.ts";
import { membersOf } from "../../util/json.ts";
import { domainOf, formatDifference, separatorOf, type TriedDomain, wellKnownChains } from "../domains.ts";
import { digestUnder } from "../eip712.ts";
import { isSignedAsMessage } from "../explain-members.ts";
import type { SignatureContext } from "../for-people.ts";
import { permit2Separator } from "../permit2-domain.ts";
import {
  channelId,
  channelTypehashes,
  claimBatchDigest,
  depositNonce,
  permitHash,
  refundDigest,
  type Voucher,
  type VoucherClaim,
  voucherDigest,
  voucherKeyOf,
} from "./channel.ts";
import { batchSettlementAddress, erc3009CollectorAddress } from "./contracts.ts";
import { type ChannelPayload, claimOf, depositOf, refundOf, type VoucherPayload } from "./payloads.ts";

/* Finds out what a channel's signatures were made for if the escrow does not accept them. */

/** Creates a finding with the texts for one of the scheme's reasons. */
export function channelFinding(
  reason: ChannelReason,
  at: string,
  facts: { title: string; got?: string; expected?: string; fix?: string },
): Finding {
  const { meaning: why, fix } = channelTexts[reason];
  const { situation } = channelInvalid(reason, "");
  const mistake = channelReason(reason);
  return { mistake, reason: mistake, situation, at, why, fix, ...facts };
}

/** A digest that may have been signed by mistake, and what it stands for, to complete "signed …". */
type Likely = { instead: string; digest: Hex };

/** A signature, the signer and digest that it must match, and likely mistakes. */
type Signed = {
  reason: ChannelReason;
  at: string;
  /** The field that names the signer. */
  by: string;
  signer: Address;
  digest: Hex;
  signature: Hex;
  likely: readonly Likely[];
};

/** Explains a signature by an account without code. An account with code may accept others; only the chain can tell. */
function explainSigner(
  { reason, at, by, signer, digest, signature, likely }: Signed,
  { recover }: Pick<SignatureContext, "recover">,
): Finding[] {
  const title = `The signature is not that of ${by}`;
  const expected = `the signature of ${checksumAddress(signer)}`;
  const length = signature.length / 2 - 1;
  if (length > 65) return [];
  if (length < 65)
    return [channelFinding(reason, at, { title, got: plural(length, "byte"), expected: "65 bytes" })];
  const isSigners = (other: Hex) => {
    const found = recover(other, signature);
    return found !== undefined && sameAddress(found, signer);
  };
  if (isSigners(digest)) {
    if (/(1b|1c)$/i.test(signature)) return [];
    const got = `${signature.slice(-2)} as the last byte`;
    return [
      channelFinding(reason, at, {
        title: "The contracts take v as 27 or 28 alone",
        got,
        expected: "1b or 1c",
      }),
    ];
  }
  const meant = likely.find((other) => isSigners(other.digest))?.instead;
  if (meant !== undefined) {
    return [channelFinding(reason, at, { title: `${by} signed something else`, got: `signed ${meant}` })];
  }
  if (isSignedAsMessage([digest], (other) => recover(other, signature), signer)) {
    const got = "signed as a message (personal_sign)";
    return [
      channelFinding(reason, at, { title: `${by} signed a message`, got, expected: "typed data (EIP-712)" }),
    ];
  }
  const other = recover(digest, signature);
  const got = other && `recovers to ${checksumAddress(other)} for these values`;
  return [channelFinding(reason, at, { title, ...(got !== undefined && { got }), expected })];
}

const chainIds = [...builtInNetworks.all.map(({ chainId }) => chainId), ...wellKnownChains.keys()];

/** Common mistakes in vouchers: another network, another amount, or a signature for the channel's correct id. */
function likelyVouchers(
  { config, voucher }: ChannelPayload,
  chainId: number,
  amounts: readonly bigint[],
): readonly Likely[] {
  const { channelId: id, maxClaimableAmount: max } = voucher;
  const right = channelId(config, chainId);
  return [
    ...(right === id
      ? []
      : [{ instead: `for the channel ${right}`, digest: voucherDigest(right, max, chainId) }]),
    ...amounts.map((amount) => ({
      instead: `${amount}, and not ${max}`,
      digest: voucherDigest(id, amount, chainId),
    })),
    ...chainIds
      .filter((other) => other !== chainId)
      .flatMap((other) =>
        [id, channelId(config, other)].map((there) => ({
          instead: `for chain ${other}, and not ${chainId}`,
          digest: voucherDigest(there, max, other),
        })),
      ),
  ];
}

/** Explains a wrong voucher signature; empty if it is right. */
export function explainVoucher(
  channel: ChannelPayload,
  { limit }: Pick<SignedPayment, "limit">,
  context: SignatureContext,
  at = "voucher.signature",
): Finding[] {
  const { config, voucher } = channel;
  const { channelId: id, maxClaimableAmount: max, signature } = voucher;
  const { chainId } = context.network;
  const key = voucherKeyOf(config);
  const digest = voucherDigest(id, max, chainId);
  const likely = likelyVouchers(channel, chainId, [context.requirements.amount, limit, 0n]);
  const who = { by: key === undefined ? "the payer" : "payerAuthorizer", signer: key ?? config.payer };
  return explainSigner({ reason: "voucher_signature", at, ...who, digest, signature, likely }, context);
}

/** Finds a purchase whose voucher does not even cover the price. */
export function explainFloor(
  { voucher, isRefund }: VoucherPayload,
  { requirements: { amount } }: SignatureContext,
): Finding[] {
  const { maxClaimableAmount: max } = voucher;
  if (isRefund || max >= amount) return [];
  const title = "The voucher does not cover the price";
  const facts = { title, got: `${max}`, expected: `all that was charged before, and ${amount}` };
  return [channelFinding("cumulative_below_claimed", "voucher.maxClaimableAmount", facts)];
}

const transferTypehash = keccak256Text(
  "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)",
);

/** Explains a wrong payer's signature on a deposit; empty if it is right. */
export function explainDeposit(payment: SignedPayment, context: SignatureContext): Finding[] {
  const { signature, payer: signer, nonce, limit: amount, window } = payment;
  const { config, voucher, salt, permit } = depositOf(payment);
  const { asset, network, requirements } = context;
  const { chainId } = network;
  const signed = { from: signer, token: payment.asset, amount, nonce, channel: voucher.channelId };
  if (isErc6492(signature)) return [];
  if (permit !== undefined) {
    const hash = permitHash(signed, window.last);
    const likely = chainIds.map((other) => ({
      instead: `for chain ${other}`,
      digest: digestUnder(permit2Separator(other), hash),
    }));
    const digest = digestUnder(permit2Separator(chainId), hash);
    const at = "deposit.authorization.permit2Authorization.signature";
    return explainSigner(
      { reason: "permit2_invalid_signature", at, by: "the payer", signer, digest, signature, likely },
      context,
    );
  }
  const own = { asset, chainId };
  const domain = domainOf(own);
  const hashOf = (changed: { to?: Address; nonce?: Hex; value?: bigint; typehash?: Hex }) => {
    const { to = erc3009CollectorAddress, value = amount, typehash = channelTypehashes.receive } = changed;
    const numbers = [value, window.first - 1n, window.last + 1n].map(uintWord).join("");
    const accounts = `${addressWord(signer)}${addressWord(to)}`;
    return keccak256(`${typehash}${accounts}${numbers}${(changed.nonce ?? nonce).slice(2)}`);
  };
  const under = (tried: TriedDomain, hash = hashOf({})) => digestUnder(separatorOf(tried), hash);
  const { name, version } = membersOf(requirements.extra);
  const domains: TriedDomain[] = [
    ...(typeof name === "string" && typeof version === "string" ? [{ ...domain, name, version }] : []),
    ...chainIds.map((other) => ({ ...domain, chainId: other })),
    ...builtInNetworks.all.map(({ usdc }) => ({ ...domain, name: usdc.name, version: usdc.version })),
  ];
  const inEscrow = channelId(config, chainId);
  const values = [
    { instead: "the salt alone as nonce, not keccak256(abi.encode(channelId, salt))", nonce: salt ?? nonce },
    { instead: `a nonce for the channel ${inEscrow}`, nonce: depositNonce(inEscrow, salt ?? nonce) },
    { instead: "TransferWithAuthorization, not ReceiveWithAuthorization", typehash: transferTypehash },
    { instead: "`to` the escrow, not its collector", to: batchSettlementAddress },
    { instead: "`to` the receiver, not the collector", to: config.receiver },
    { instead: `the price as value, not deposit.amount`, value: requirements.amount },
  ];
  const likely = [
    ...values.map(({ instead, ...changed }) => ({ instead, digest: under(domain, hashOf(changed)) })),
    ...domains.map((tried) => ({ instead: `with ${formatDifference(tried, own)}`, digest: under(tried) })),
  ];
  const at = "deposit.authorization.erc3009Authorization.signature";
  const digest = under(domain);
  return explainSigner(
    { reason: "receive_authorization_signature", at, by: "the payer", signer, digest, signature, likely },
    context,
  );
}

/** Finds problems with the rows of a claim. */
function explainRows(
  claims: readonly VoucherClaim[],
  payment: SignedPayment,
  context: SignatureContext,
): Finding[] {
  return claims.flatMap(({ channel: config, maxClaimableAmount, signature, totalClaimed }, index) => {
    const id = channelId(config, context.network.chainId);
    const voucher: Voucher & { channelId: Hex } = { channelId: id, maxClaimableAmount, signature };
    const at = `claims[${index}]`;
    const above = {
      title: "The row claims more than its voucher allows (ClaimExceedsCeiling)",
      got: `${totalClaimed}`,
      expected: `at most ${maxClaimableAmount}`,
    };
    return [
      ...(totalClaimed > maxClaimableAmount
        ? [channelFinding("claim_simulation_failed", `${at}.totalClaimed`, above)]
        : []),
      ...explainVoucher({ config, voucher }, payment, context, `${at}.signature`),
    ];
  });
}

/** Explains a wrong authorizer's signature on a claim; empty if the facilitator is to sign. */
function explainBatch(claims: readonly VoucherClaim[], signature: Hex, context: SignatureContext): Finding[] {
  const [first] = claims;
  const at = "claimAuthorizerSignature";
  if (first === undefined || signature === "0x") return [];
  const { receiverAuthorizer: signer } = first.channel;
  const other = claims.findIndex(({ channel }) => !sameAddress(channel.receiverAuthorizer, signer));
  if (other >= 0) {
    const title = "One signature claims for one receiverAuthorizer alone (NotReceiverAuthorizer)";
    const got = claims[other]?.channel.receiverAuthorizer ?? "";
    const place = `claims[${other}].voucher.channel.receiverAuthorizer`;
    return [channelFinding("claim_simulation_failed", place, { title, got, expected: signer })];
  }
  const { chainId } = context.network;
  const likely = [
    ...Array.from(claims.keys()).map((index) => ({
      instead: `the row ${index} alone`,
      digest: claimBatchDigest(claims.slice(index, index + 1), chainId),
    })),
    ...chainIds.map((chain) => ({ instead: `for chain ${chain}`, digest: claimBatchDigest(claims, chain) })),
  ];
  const digest = claimBatchDigest(claims, chainId);
  return explainSigner(
    { reason: "claim_simulation_failed", at, by: "receiverAuthorizer", signer, digest, signature, likely },
    context,
  );
}

/** Finds problems with a claim. */
export function explainClaims(payment: SignedPayment, context: SignatureContext): Finding[] {
  const { claims, signature } = claimOf(payment);
  return [...explainRows(claims, payment, context), ...explainBatch(claims, signature, context)];
}

/** Finds problems with a shop's refund. */
export function explainRefund(payment: SignedPayment, context: SignatureContext): Finding[] {
  const refund = refundOf(payment);
  const { config, voucher, claims, amount, refundNonce, signature, claimSignature } = refund;
  const { chainId } = context.network;
  const id = channelId(config, chainId);
  const places: [Hex, string][] = [
    [voucher.channelId, "voucher.channelId"],
    ...claims.map(({ channel }, index): [Hex, string] => [
      channelId(channel, chainId),
      `claims[${index}].voucher.channel`,
    ]),
  ];
  const title = "It is of another channel than channelConfig makes";
  const ids = places.flatMap(([got, at]) =>
    got === id ? [] : [channelFinding("channel_id_mismatch", at, { title, got, expected: id })],
  );
  const ofRefund = (nonce: bigint, total: bigint, chain = chainId) =>
    refundDigest(voucher.channelId, nonce, total, chain);
  const signed: Signed = {
    reason: "refund_simulation_failed",
    at: "refundAuthorizerSignature",
    by: "receiverAuthorizer",
    signer: config.receiverAuthorizer,
    digest: ofRefund(refundNonce, amount),
    signature,
    likely: [
      ...[refundNonce + 1n, 0n].map((nonce) => ({
        instead: `nonce ${nonce}`,
        digest: ofRefund(nonce, amount),
      })),
      ...chainIds.map((chain) => ({
        instead: `for chain ${chain}`,
        digest: ofRefund(refundNonce, amount, chain),
      })),
    ],
  };
  return [
    ...ids,
    ...explainVoucher({ ...refund, voucher: { ...voucher, channelId: id } }, payment, context),
    ...(signature === "0x" ? [] : explainSigner(signed, context)),
    ...explainBatch(claims, claimSignature, context),
  ];
}
