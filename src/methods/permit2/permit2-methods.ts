import { recipientIsPayTo } from "../../protocol/checks.ts";
import { type Address, isAddress, sameAddress } from "../../protocol/hex.ts";
import { isPaidBy } from "../../protocol/networks.ts";
import { propertyOf } from "../../protocol/wire-values.ts";
import { approvalDeadline } from "../approval.ts";
import type { Method } from "../method.ts";
import {
  exactProxyAddress,
  permit2Address,
  permit2Separator,
  permitDigest,
  uptoProxyAddress,
} from "./permit.ts";
import {
  exactPermit2,
  isPermit2,
  payerOf,
  permit2Words,
  permitOf,
  permitPayment,
  permitTimes,
  readPermitPayload,
  uptoPermit2,
  writePermitPayload,
} from "./permit2-payload.ts";
import { permit2Refusals, permit2StateRefusals } from "./permit2-refusals.ts";
import { signPermit } from "./sign-permit.ts";

/** The differences between the two Permit2 schemes. */
type Kind<Scheme extends string> = {
  name: string;
  scheme: Scheme;
  /** The x402 proxy that payers sign for. */
  spender: Address;
  /** True if the witness names the account that submits it. */
  hasFacilitator: boolean;
};

/** Creates the off-chain part of a Permit2 payment method. */
function createPermit2Method<Scheme extends string>({
  name,
  scheme,
  spender,
  hasFacilitator,
}: Kind<Scheme>): Method<Scheme, "permit2"> {
  return {
    name,
    scheme,
    // Version 1 of x402 only has EIP-3009.
    versions: [2],
    words: scheme === "upto" ? { ...permit2Words, reference: "upto" } : permit2Words,
    nonceSpace: permit2Address,
    spender: permit2Address,
    stateRefusals: permit2StateRefusals,
    transfer: "permit2",
    takesLess: hasFacilitator,
    owns: isPermit2,
    payerOf,

    submitter: (payment) => permitOf(payment).facilitator,

    /** In the order of public facilitators: spender, payee, submitter. */
    checks: [
      ({ payment }) => {
        const { spender: signed } = permitOf(payment);
        return sameAddress(signed, spender) ? undefined : permit2Refusals.spenderDiffers(signed, spender);
      },
      recipientIsPayTo,
      ({ payment }, { facilitatorContract }) => {
        const { facilitator } = permitOf(payment);
        return facilitator === undefined || sameAddress(facilitator, facilitatorContract)
          ? undefined
          : permit2Refusals.facilitatorDiffers(facilitator, facilitatorContract);
      },
    ],

    offerNeeds: hasFacilitator ? ["facilitatorAddress"] : [],
    extra({ assets, facilitatorContract }) {
      if (!assets.some((asset) => isPaidBy(asset, "permit2"))) return undefined;
      // The submitter is the facilitator contract, whichever operator sends the transaction.
      const submitter = hasFacilitator ? { facilitatorAddress: facilitatorContract } : {};
      return { assetTransferMethod: "permit2", ...submitter };
    },

    read: (place, _asset, extensions) => readPermitPayload(place, { hasFacilitator }, extensions),

    approvalDeadline,

    digester(_asset, chainId) {
      const separator = permit2Separator(chainId);
      return (payment) => permitDigest(separator, permitOf(payment));
    },

    async sign(signer, { asset, chainId, to, value, nonce, extra, permit, ...times }) {
      const facilitatorAddress = propertyOf(extra, "facilitatorAddress");
      const terms = {
        chainId,
        token: asset.address,
        to,
        amount: value,
        facilitator: hasFacilitator && isAddress(facilitatorAddress) ? facilitatorAddress : undefined,
        ...permitTimes({ validAfter: 0n, ...times }),
        ...(nonce !== undefined && { nonce: BigInt(nonce) }),
        ...permit,
      };
      return permitPayment(await signPermit(signer, terms));
    },

    async describeWrongSignature(payment, right, recover) {
      // Loaded lazily: most pages never need it.
      const { describePermitMistake } = await import("./explain-permit2.ts");
      return describePermitMistake(
        { permit: permitOf(payment), signature: payment.signature },
        right,
        recover,
      );
    },

    async describe(payment) {
      // Loaded lazily: only needed for display.
      const { describePermit } = await import("./explain-permit2.ts");
      return describePermit(permitOf(payment));
    },

    write: (payment) => writePermitPayload(permitOf(payment), payment.signature),
  };
}

/** Scheme "exact" with Permit2, for any ERC-20 token whose payers have approved Permit2. Only in version 2 of x402. */
export const exactPermit2Method: Method<"exact", "permit2"> = createPermit2Method({
  name: exactPermit2,
  scheme: "exact",
  spender: exactProxyAddress,
  hasFacilitator: false,
});

/** Scheme "upto" with Permit2: the payer signs a maximum, and settle takes part or all of it, once. */
export const uptoPermit2Method: Method<"upto", "permit2"> = createPermit2Method({
  name: uptoPermit2,
  scheme: "upto",
  spender: uptoProxyAddress,
  hasFacilitator: true,
});
