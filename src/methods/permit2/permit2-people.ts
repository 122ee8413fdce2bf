import { type Hex, isAddress, sameAddress, uintWord } from "../../protocol/hex.ts";
import { type Finding, finding } from "../../protocol/mistakes.ts";
import { isErc6492 } from "../../protocol/signed-payment.ts";
import { knownToken } from "../../protocol/token-units.ts";
import { readPart } from "../../protocol/wire-values.ts";
import { membersOf } from "../../util/json.ts";
import { showValue } from "../../util/text.ts";
import { digestUnder } from "../eip712.ts";
import { explainNumber, readAnyNumber } from "../explain-members.ts";
import type { MethodForPeople, SignatureContext } from "../for-people.ts";
import { describeMalformed } from "../method.ts";
import { likelyMistakes } from "./explain-permit2.ts";
import {
  exactProxyAddress,
  type Permit,
  permit2Address,
  permit2Separator,
  permitHash,
  uptoProxyAddress,
} from "./permit.ts";
import {
  permit2Words,
  permitMember,
  permitOf,
  permitPayloadFor,
  readPermitPayload,
} from "./permit2-payload.ts";

export const permit2ForPeople: MethodForPeople = {
  transfer: "permit2",
  member: permitMember,
  words: permit2Words,

  nameOf({ from: payer, permitted, nonce: given }) {
    const number = readAnyNumber(given);
    const nonce: Hex | undefined = number === undefined ? undefined : `0x${uintWord(number)}`;
    return { payer, value: membersOf(permitted).amount, nonce, nonceSpace: permit2Address };
  },

  /** The nonce, and what names another party than is asked for: the spender, the token, and who submits it. */
  explainMessage(permit, { asked, contract }) {
    const { spender, permitted, witness, nonce } = permit;
    const { facilitator } = membersOf(witness);
    const isUpto = asked?.scheme === "upto";
    const proxy = isUpto ? uptoProxyAddress : exactProxyAddress;
    return [
      ...explainNumber(`${permitMember}.nonce`, nonce),
      ...explainAddress("permit-spender", "spender", spender, proxy),
      ...explainAddress("permit-token", "permitted.token", membersOf(permitted).token, asked?.asset),
      ...(isUpto ? explainAddress("permit-facilitator", "witness.facilitator", facilitator, contract) : []),
    ];
  },

  explainSignature,

  /** Clients sign for the facilitator that an offer names. */
  explainOffer(at, { scheme, extra }, { contract }) {
    const { facilitatorAddress } = membersOf(extra);
    if (scheme !== "upto" || (isAddress(facilitatorAddress) && sameAddress(facilitatorAddress, contract)))
      return [];
    const facts = { got: showValue(facilitatorAddress), expected: contract };
    return [finding("permit-facilitator", `${at}.extra.facilitatorAddress`, facts)];
  },

  example: permitPayloadFor,
};

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

/** Finds what the signature of a permit was made for, where it is not the payer's for what is sent. */
function explainSignature(
  payload: Record<string, unknown>,
  { at, signature, asked, network, tokens, recover }: SignatureContext,
): Finding[] {
  const permit = readPermit(payload, { hasFacilitator: asked?.scheme === "upto" });
  if (permit === undefined || network === undefined) return [];
  if (isErc6492(signature)) return [finding("undeployed-wallet", at)];
  const malformed = describeMalformed(signature);
  if (malformed !== undefined) {
    // Contract wallets often have longer signatures, which only the wallet can check.
    if (signature.length / 2 - 1 > 65) return [];
    return [finding("malformed-signature", at, { got: showValue(signature), expected: "65 bytes" })];
  }
  const { chainId } = network;
  const digest = digestUnder(permit2Separator(chainId), permitHash(permit));
  const signer = recover(digest, signature);
  if (signer !== undefined && sameAddress(signer, permit.from)) return [];
  const asset = knownToken(network, permit.token, tokens) ?? { ...network.usdc, address: permit.token };
  for (const { mistake, instead, digest } of likelyMistakes(permit, { asset, chainId })) {
    const signer = recover(digest, signature);
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

function readPermit(payload: Record<string, unknown>, kind: { hasFacilitator: boolean }): Permit | undefined {
  let isMalformed = false;
  const part = readPart(payload, "", () => {
    isMalformed = true;
  });
  const payment = readPermitPayload(part, kind);
  // What is malformed is said elsewhere, member by member.
  return isMalformed ? undefined : permitOf(payment);
}
