import { createBoundedMap } from "../util/cache.ts";
import { type Invalid, invalidAt } from "./catalogue.ts";
import { type Address, checksumAddress, sameAddress } from "./hex.ts";
import { type Asset, findAsset } from "./networks.ts";
import { expiryMarginSeconds } from "./refusals.ts";
import type { PaymentRequest } from "./requests.ts";
import { readEcdsaSignature, type SignedPayment } from "./signed-payment.ts";
import { propertyOf } from "./wire-values.ts";

/*
 * Where the specification leaves room, the public reference facilitator (`@x402/evm`) decides. Each finding below is
 * a payment that it refuses. With `spec` such a payment stays valid, and its response has the finding as a warning.
 */

/** How strict to be where the specification leaves room: only as strict as it, or like the reference facilitator. */
export const strictnesses = ["spec", "reference"] as const;

export type Strictness = (typeof strictnesses)[number];

/** Something in a good payment that another facilitator refuses, or that was ignored. */
export type Warning = { code: WarningCode; at: string; message: string };

export const warningCodes = [
  "short_form",
  "extra_incomplete",
  "extra_differs",
  "address_case",
  "signature_v",
  "approval_expired",
  "identifier_ignored",
] as const;

export type WarningCode = (typeof warningCodes)[number];

const requirementsExtra = "paymentRequirements.extra";

/** Everything in a request that the reference facilitator refuses and the specification does not. */
function findingsOf(request: PaymentRequest, assets: readonly Asset[]): Warning[] {
  const { payment, requirements, words } = request;
  const short = requirements.isShortForm
    ? [warn("short_form", "paymentRequirements", " must have maxAmountRequired and payTo in version 1")]
    : [];
  // If another contract keeps the nonces, the signature is for that contract's domain, not for the token's.
  if (!sameAddress(payment.nonceSpace, payment.asset)) return short;
  const asset = findAsset(assets, requirements.asset);
  return [
    ...short,
    ...checkExtra(requirements.extra, asset),
    ...checkCase(`paymentPayload.payload.${words.payer}`, payment.payer),
    ...checkCase(`paymentPayload.payload.${words.payTo}`, payment.payTo),
  ];
}

/** The refusal of a request that the reference facilitator refuses by its form; undefined if it does not. */
export function refuseAsReference(
  request: PaymentRequest,
  { strictness, assets }: { strictness?: Strictness | undefined; assets: readonly Asset[] },
): Invalid | undefined {
  if (strictness !== "reference") return undefined;
  const [first] = findingsOf(request, assets);
  if (first === undefined) return undefined;
  const part = first.at.startsWith("paymentRequirements") ? "requirements_malformed" : "payload_malformed";
  return {
    ...invalidAt(part, first.at, first.message.slice(first.at.length)),
    // It hashes with the domain in the requirements and rejects wrong checksums, so there the signature fails.
    ...(first.code !== "short_form" && {
      reference:
        first.code === "extra_incomplete"
          ? "invalid_exact_evm_missing_eip712_domain"
          : "invalid_exact_evm_signature",
    }),
  };
}

/** The time of the response, in Unix seconds, and the part of the payment method that knows its approval. */
type WarningContext = {
  now: bigint;
  method: { approvalDeadline?(payment: SignedPayment): bigint | undefined };
};

/**
 * The warnings in the response to a good payment: what the reference facilitator would refuse.
 *
 * @param assets the assets of the serving network
 */
export function warningsOf(
  request: PaymentRequest,
  { strictness, assets }: { strictness?: Strictness | undefined; assets: readonly Asset[] },
  context: WarningContext,
): readonly Warning[] {
  const { identifierProblem } = request;
  const ignored =
    identifierProblem === undefined ? [] : [{ ...ignoredIdentifier, message: identifierProblem }];
  // With `reference`, these findings are refusals, and tokens judge signatures as received.
  if (strictness === "reference") return ignored;
  return [
    ...findingsOf(request, assets),
    ...checkV(request),
    ...checkExpiredApproval(request, context),
    ...ignored,
  ];
}

const ignoredIdentifier = {
  code: "identifier_ignored",
  at: "paymentPayload.extensions.payment-identifier",
} as const;

function checkExtra(extra: unknown, asset: Asset | undefined): Warning[] {
  const [name, version] = [propertyOf(extra, "name"), propertyOf(extra, "version")];
  if (!name || !version) {
    return [warn("extra_incomplete", requirementsExtra, " must have name and version of the token's domain")];
  }
  if (asset === undefined || (name === asset.name && version === asset.version)) return [];
  const own = `{"name":${JSON.stringify(asset.name)},"version":${JSON.stringify(asset.version)}}`;
  return [warn("extra_differs", requirementsExtra, ` must be ${own}, the domain of the token`)];
}

/** An address in mixed case has a checksum (EIP-55); one in upper case counts as such, too. */
function checkCase(at: string, address: Address): Warning[] {
  return address === address.toLowerCase() || hasChecksum(address)
    ? []
    : [warn("address_case", at, " has a wrong checksum (EIP-55)")];
}

/** Recently checked addresses and their results: a check takes 10 us, and a shop has the same payTo each time. */
const looked = createBoundedMap<Address, boolean>(4_096);

function hasChecksum(address: Address): boolean {
  const known = looked.get(address);
  if (known !== undefined) return known;
  const isRight = address === checksumAddress(address);
  looked.set(address, isRight);
  return isRight;
}

function checkV({ payment: { signature } }: PaymentRequest): Warning[] {
  if (!/0[01]$/.test(signature) || readEcdsaSignature(signature) === undefined) return [];
  return [
    warn("signature_v", "paymentPayload.payload.signature", " ends with v 0 or 1, and must with 27 or 28"),
  ];
}

/** An approval that is not needed may have expired, since it is not submitted. */
function checkExpiredApproval({ payment }: PaymentRequest, { now, method }: WarningContext): Warning[] {
  const deadline = method.approvalDeadline?.(payment);
  if (deadline === undefined || deadline >= now + expiryMarginSeconds) return [];
  const at = "paymentPayload.extensions.eip2612GasSponsoring.info.deadline";
  return [warn("approval_expired", at, " has passed; the approval is not needed")];
}

function warn(code: WarningCode, at: string, problem: string): Warning {
  return { code, at, message: at + problem };
}
