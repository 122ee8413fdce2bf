import { recoverSigner } from "../../chain/signing/recover-signer.ts";
import { describeMalformed, digestUnder } from "../../methods/method.ts";
import { likelyMistakes } from "../../methods/permit2/explain-permit2.ts";
import {
  exactProxyAddress,
  type Permit,
  permit2Separator,
  permitHash,
  uptoProxyAddress,
} from "../../methods/permit2/permit.ts";
import { permitMember, permitOf, readPermitPayload } from "../../methods/permit2/permit2-payload.ts";
import { type Address, type Hex, isAddress, sameAddress } from "../../protocol/hex.ts";
import { type Finding, finding } from "../../protocol/mistakes.ts";
import type { Network } from "../../protocol/networks.ts";
import { signature as signatureSchema } from "../../protocol/primitives.ts";
import { isErc6492 } from "../../protocol/signed-payment.ts";
import { type KnownTokens, knownToken } from "../../protocol/token-units.ts";
import { MalformedError } from "../../protocol/wire-values.ts";
import { membersOf } from "../../util/json.ts";
import { showValue } from "../../util/text.ts";

/** Requirements, as they came. */
type Asked = Record<string, unknown>;

/** Whether an offer is to be paid by Permit2, so that clients sign for its domain and not for the token's. */
export function isOfPermit2({ scheme, extra }: Asked): boolean {
  return scheme === "upto" || membersOf(extra).assetTransferMethod === "permit2";
}

/** What in a permit names another party than is asked for: the spender, the token, and who submits it. */
export function explainPermit(
  permit: Record<string, unknown>,
  { asked, contract }: { asked: Asked | undefined; contract: Address | undefined },
): Finding[] {
  const { spender, permitted, witness } = permit;
  const { facilitator } = membersOf(witness);
  const isUpto = asked?.scheme === "upto";
  const proxy = isUpto ? uptoProxyAddress : exactProxyAddress;
  const wanted = { spender: proxy, token: asked?.asset, facilitator: contract };
  return [
    ...explainAddress("permit-spender", "spender", spender, wanted.spender),
    ...explainAddress("permit-token", "permitted.token", membersOf(permitted).token, wanted.token),
    ...(isUpto
      ? explainAddress("permit-facilitator", "witness.facilitator", facilitator, wanted.facilitator)
      : []),
  ];
}

function explainAddress(
  mistake: "permit-spender" | "permit-token" | "permit-facilitator",
  member: string,
  value: unknown,
  wanted: unknown,
): Finding[] {
  const at = `${permitMember}.${member}`;
  if (!isAddress(value)) {
    return [finding("missing-member", at, { got: showValue(value), expected: "an address" })];
  }
  if (!isAddress(wanted) || sameAddress(value, wanted)) return [];
  return [finding(mistake, at, { got: value, expected: wanted })];
}

/** What the signature of a permit was made for, where it is not the payer's for what is sent. */
export function explainPermitSignature(
  payload: Record<string, unknown>,
  {
    asked,
    network,
    tokens,
  }: { asked: Asked | undefined; network: Network | undefined; tokens?: KnownTokens | undefined },
): Finding[] {
  const at = "paymentPayload.payload.signature";
  const given = signatureSchema.safeParse(payload.signature);
  if (!given.success) {
    const facts = { got: showValue(payload.signature), expected: "65 bytes as hexadecimal after 0x" };
    return [finding("malformed-signature", at, facts)];
  }
  const read = readPermit(payload, { hasFacilitator: asked?.scheme === "upto" });
  if (read === undefined || network === undefined) return [];
  const { permit, signature } = read;
  if (isErc6492(signature)) return [finding("undeployed-wallet", at)];
  const malformed = describeMalformed(signature);
  if (malformed !== undefined) {
    // Contract wallets often have longer signatures, which only the wallet can check.
    if (signature.length / 2 - 1 > 65) return [];
    return [finding("malformed-signature", at, { got: showValue(signature), expected: "65 bytes" })];
  }
  const { chainId } = network;
  const digest = digestUnder(permit2Separator(chainId), permitHash(permit));
  const signer = recoverSigner(digest, signature);
  if (signer !== undefined && sameAddress(signer, permit.from)) return [];
  const asset = knownToken(network, permit.token, tokens) ?? { ...network.usdc, address: permit.token };
  for (const { mistake, instead, digest } of likelyMistakes(permit, { asset, chainId })) {
    const signer = recoverSigner(digest, signature);
    if (signer !== undefined && sameAddress(signer, permit.from))
      return [finding(mistake, at, { got: `signed for ${instead}` })];
  }
  return [
    finding("permit-signer", at, {
      ...(signer !== undefined && { got: `recovers to ${signer} for these values` }),
      expected: `the signature of ${permit.from}`,
    }),
  ];
}

function readPermit(
  payload: Record<string, unknown>,
  kind: { hasFacilitator: boolean },
): { permit: Permit; signature: Hex } | undefined {
  try {
    const payment = readPermitPayload({ value: payload, path: "paymentPayload.payload" }, kind);
    return { permit: permitOf(payment), signature: payment.signature };
  } catch (error) {
    // What is malformed is said elsewhere, member by member.
    if (error instanceof MalformedError) return undefined;
    throw error;
  }
}

/** What in an offer makes every permit for it fail. Clients sign for the facilitator that it names. */
export function explainPermitOffer(at: string, { scheme, extra }: Asked, contract: Address): Finding[] {
  const { facilitatorAddress } = membersOf(extra);
  if (scheme !== "upto" || (isAddress(facilitatorAddress) && sameAddress(facilitatorAddress, contract)))
    return [];
  const facts = { got: showValue(facilitatorAddress), expected: contract };
  return [finding("permit-facilitator", `${at}.extra.facilitatorAddress`, facts)];
}
