import { type Hex, isAddress, sameAddress, uintWord } from "../../protocol/hex.ts";
import { type Finding, finding } from "../../protocol/mistakes.ts";
import { isErc6492, type SignedPayment } from "../../protocol/signed-payment.ts";
import { membersOf } from "../../util/json.ts";
import { showValue } from "../../util/text.ts";
import { describeMalformed } from "../describe-malformed.ts";
import { digestUnder } from "../eip712.ts";
import { isSignedAsMessage, readAnyNumber } from "../explain-members.ts";
import type { MethodForPeople, SignatureContext } from "../for-people.ts";
import { likelyMistakes } from "./explain-permit2.ts";
import { permit2Address, permit2Separator, permitHash } from "./permit.ts";
import { exactPermit2, permitMember, permitOf, permitPayloadFor, uptoPermit2 } from "./permit2-payload.ts";
import { createPermitPayloadSchema } from "./permit2-schemas.ts";

export const permit2ForPeople: MethodForPeople = {
  names: [exactPermit2, uptoPermit2],
  label: "Permit2",
  option: "permit",
  member: permitMember,

  nameOf({ from: payer, permitted, nonce: given }) {
    const number = readAnyNumber(given);
    const nonce: Hex | undefined = number === undefined ? undefined : `0x${uintWord(number)}`;
    return { payer, value: membersOf(permitted).amount, nonce, nonceSpace: permit2Address };
  },

  explainSignature,

  payloadSchema: (scheme) => createPermitPayloadSchema({ hasFacilitator: scheme === "upto" }),

  /** Clients sign for the facilitator in the offer, so it must be the right one. */
  explainOffer(at, { scheme, extra }, { contract }) {
    const { facilitatorAddress } = membersOf(extra);
    if (scheme !== "upto" || (isAddress(facilitatorAddress) && sameAddress(facilitatorAddress, contract)))
      return [];
    const facts = { got: showValue(facilitatorAddress), expected: contract };
    return [finding("permit-facilitator", `${at}.extra.facilitatorAddress`, facts)];
  },

  example: permitPayloadFor,
};

/** Finds out what a permit's signature was made for; empty if it is the payer's signature for the permit as sent. */
function explainSignature(
  payment: SignedPayment,
  { at, network, asset, recover }: SignatureContext,
): Finding[] {
  const { signature } = payment;
  const permit = permitOf(payment);
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
  for (const { mistake, instead, digest } of likelyMistakes(permit, { asset, chainId })) {
    const signer = recover(digest, signature);
    if (signer !== undefined && sameAddress(signer, permit.from))
      return [finding(mistake, at, { got: `signed for ${instead}` })];
  }
  if (isSignedAsMessage([digest], (other) => recover(other, signature), permit.from)) {
    return [finding("signed-as-message", at)];
  }
  return [
    finding("permit-signer", at, {
      ...(signer !== undefined && { got: `recovers to ${signer} for these values` }),
      expected: `the signature of ${permit.from}`,
    }),
  ];
}
