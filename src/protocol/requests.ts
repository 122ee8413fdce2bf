import { type Authorization, settlementId } from "./authorization.ts";
import { type Invalid, type InvalidPart, invalidAt } from "./catalogue.ts";
import { type Address, type Hex, sameAddress } from "./hex.ts";
import { builtInNetworks, type Network, type NetworkRegistry } from "./networks.ts";
import {
  type PaymentIdentifier,
  paymentIdentifierExtension,
  readPaymentIdentifier,
} from "./payment-identifier.ts";
import { refusals } from "./refusals.ts";
import {
  inObject,
  isWireAddress,
  MalformedError,
  optional,
  readBytes32,
  readSeconds,
  readSignature,
  readText,
  readUint256,
  readWireAddress,
} from "./wire-values.ts";

export type X402Version = 1 | 2;

/** What is read of a request even when it is refused; every answer repeats it. */
export type Envelope = {
  /** The version to answer in; 1 when the request's own could not be read. */
  x402Version: X402Version;
  /** `authorization.from` as the caller spelled it; undefined when unreadable. */
  payer: string | undefined;
  /** The network as the caller spelled it; empty when unreadable. */
  network: string;
};

/** A well-formed request, independent of its version. */
export type PaymentRequest = Envelope & {
  /** The id of its settlement: computed once, since a hash takes longer than most checks. */
  settlementId: Hex;
  knownNetwork: Network;
  authorization: Authorization;
  signature: Hex;
  /** What the seller asks for; `amount` in the asset's smallest unit. */
  requirements: { amount: bigint; asset: Address; payTo: Address | undefined };
  /** What the payer's client calls the payment, in version 2. */
  identifier?: PaymentIdentifier;
};

export type ParsedRequest =
  /** `identifierProblem`: what is wrong with the payment's identifier, because of which there is no verdict. */
  | { ok: true; request: PaymentRequest; identifierProblem?: string }
  | { ok: false; envelope: Envelope; invalid: Invalid };

/**
 * Reads the JSON body of a verify or settle call of either version. Whatever the body is, the outcome is a request
 * or a refusal with its reason; this never throws. Types are not coerced.
 *
 * @param known the networks that exist at all; the built-in ones by default
 */
export function parsePaymentRequest(body: unknown, known: NetworkRegistry = builtInNetworks): ParsedRequest {
  const envelope = readEnvelope(body);
  const refuse = (refusal: Invalid): ParsedRequest => ({ ok: false, envelope, invalid: refusal });

  const payload = member(body, "paymentPayload");
  if (!isRecord(payload))
    return refuse(invalidAt("payload_malformed", "paymentPayload", " must be an object"));
  const version = member(payload, "x402Version");
  if (version !== 1 && version !== 2) {
    const form = typeof version === "string" ? "the number 1 or 2, not text" : "1 or 2";
    return refuse(invalidAt("version_unknown", "paymentPayload.x402Version", ` must be ${form}`));
  }
  const accepted = version === 1 ? payload : member(payload, "accepted");
  const acceptedAt = version === 1 ? "paymentPayload" : "paymentPayload.accepted";
  const namesScheme = member(payload, "scheme") !== undefined;
  const otherVersion = `, or x402Version ${3 - version}: this looks like a payment of version ${3 - version}`;
  if (!isRecord(accepted)) {
    const hint = namesScheme ? otherVersion : "";
    return refuse(invalidAt("payload_malformed", acceptedAt, ` must be an object${hint}`));
  }
  if (version === 1 && !namesScheme && isRecord(member(payload, "accepted"))) {
    return refuse(invalidAt("payload_malformed", `${acceptedAt}.scheme`, ` must be a string${otherVersion}`));
  }

  const named = readSchemeAndNetwork(known, accepted, acceptedAt, version, "payload", true);
  if ("reason" in named) return refuse(named);

  const requirements = member(body, "paymentRequirements");
  if (!isRecord(requirements)) {
    return refuse(malformedRequirements("paymentRequirements", " must be an object"));
  }
  const schemeRequired = version === 2 || member(requirements, "amount") === undefined;
  const asked = readSchemeAndNetwork(
    known,
    requirements,
    "paymentRequirements",
    version,
    "requirements",
    schemeRequired,
  );
  if ("reason" in asked) return refuse(asked);
  if (asked !== named) {
    return refuse(refusals.networksDiffer(named.name, asked.name));
  }

  const terms = version === 1 ? readRequirementsV1(requirements) : readRequirementsV2(requirements);
  if ("reason" in terms) return refuse(terms);

  const exact = unlessMalformed(
    () => readExactPayload(member(payload, "payload")),
    (at, problem) => invalidAt("payload_malformed", at, problem),
  );
  if ("reason" in exact) return refuse(exact);
  const { authorization, signature } = exact;
  const identifier = version === 1 ? undefined : readIdentifier(payload);
  return {
    ok: true,
    ...(typeof identifier === "string" && { identifierProblem: identifier }),
    request: {
      ...envelope,
      settlementId: settlementId(named.chainId, terms.asset, authorization.from, authorization.nonce),
      knownNetwork: named,
      authorization,
      signature,
      requirements: terms,
      ...(typeof identifier === "object" && { identifier }),
    },
  };
}

function readIdentifier(payload: object): PaymentIdentifier | string | undefined {
  const extension = member(member(payload, "extensions"), paymentIdentifierExtension);
  return readPaymentIdentifier(extension, member(member(payload, "resource"), "url"));
}

function readEnvelope(body: unknown): Envelope {
  const payload = member(body, "paymentPayload");
  const requirements = member(body, "paymentRequirements");
  const x402Version = member(payload, "x402Version") === 2 ? 2 : 1;
  const candidates = [
    member(x402Version === 1 ? payload : member(payload, "accepted"), "network"),
    member(requirements, "network"),
  ];
  const from = member(member(member(payload, "payload"), "authorization"), "from");
  return {
    x402Version,
    payer: isWireAddress(from) ? from : undefined,
    network: candidates.find((candidate) => typeof candidate === "string") ?? "",
  };
}

function readSchemeAndNetwork(
  known: NetworkRegistry,
  part: object,
  path: string,
  version: X402Version,
  fault: InvalidPart,
  schemeRequired: boolean,
): Network | Invalid {
  const malformed = (at: string): Invalid => invalidAt(`${fault}_malformed`, at, " must be a string");

  const schemeName = member(part, "scheme");
  if (schemeName === undefined ? schemeRequired : typeof schemeName !== "string") {
    return malformed(`${path}.scheme`);
  }
  if (schemeName !== undefined && schemeName !== "exact") {
    return invalidAt(`scheme_of_${fault}`, `${path}.scheme`, ' must be "exact"');
  }
  const spelling = member(part, "network");
  if (typeof spelling !== "string") return malformed(`${path}.network`);
  return (
    known.find(spelling, version) ??
    refusals.networkUnknown(path, spelling, { x402Version: version, fault }, known)
  );
}

/** `paymentPayload.payload` of scheme "exact" on EVM networks, the same in both versions. */
function readExactPayload(value: unknown): Pick<PaymentRequest, "authorization" | "signature"> {
  const payload = inObject({ value, path: "paymentPayload.payload" });
  const signature = readSignature(payload("signature"));
  const authorization = inObject(payload("authorization"));
  return {
    signature,
    authorization: {
      from: readWireAddress(authorization("from")),
      to: readWireAddress(authorization("to")),
      value: readUint256(authorization("value")),
      validAfter: readUint256(authorization("validAfter")),
      validBefore: readUint256(authorization("validBefore")),
      nonce: readBytes32(authorization("nonce")),
    },
  };
}

function readRequirementsV1(value: object): PaymentRequest["requirements"] | Invalid {
  return unlessMalformed(() => {
    const requirements = inObject({ value, path: "paymentRequirements" });
    const maxAmountRequired = optional(requirements("maxAmountRequired"), readUint256);
    const amount = optional(requirements("amount"), readUint256);
    const payTo = optional(requirements("payTo"), readWireAddress);
    const recipient = optional(requirements("recipient"), readWireAddress);
    const asset = readWireAddress(requirements("asset"));
    // Checked, but not used.
    for (const name of ["resource", "description", "mimeType"]) optional(requirements(name), readText);
    optional(requirements("maxTimeoutSeconds"), readSeconds);

    const required = maxAmountRequired ?? amount;
    if (required === undefined) {
      return malformedRequirements(
        "paymentRequirements",
        " needs maxAmountRequired (or amount, in the short form)",
      );
    }
    if (amount !== undefined && amount !== required) {
      return malformedRequirements("paymentRequirements.amount", " and maxAmountRequired must be equal");
    }
    if (amount === undefined && payTo === undefined) {
      return malformedRequirements(
        "paymentRequirements.payTo",
        " must be the facilitator contract's address",
      );
    }
    if (payTo !== undefined && recipient !== undefined && !sameAddress(payTo, recipient)) {
      return malformedRequirements("paymentRequirements.recipient", " and payTo must be equal");
    }
    return { amount: required, asset, payTo: payTo ?? recipient };
  }, malformedRequirements);
}

function readRequirementsV2(value: object): PaymentRequest["requirements"] | Invalid {
  return unlessMalformed(() => {
    const requirements = inObject({ value, path: "paymentRequirements" });
    const amount = readUint256(requirements("amount"));
    const asset = readWireAddress(requirements("asset"));
    const payTo = readWireAddress(requirements("payTo"));
    optional(requirements("maxTimeoutSeconds"), readSeconds);
    return { amount, asset, payTo };
  }, malformedRequirements);
}

/** What `read` gives; where it meets a malformed value, the refusal that says so. */
function unlessMalformed<T>(read: () => T, refuse: (at: string, problem: string) => Invalid): T | Invalid {
  try {
    return read();
  } catch (error) {
    if (error instanceof MalformedError) return refuse(error.path, error.message.slice(error.path.length));
    throw error;
  }
}

function malformedRequirements(at: string, problem: string): Invalid {
  return invalidAt("requirements_malformed", at, problem);
}

function isRecord(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A property of parsed JSON, and never one that an object inherits. */
function member(value: unknown, key: string): unknown {
  if (!isRecord(value) || !Object.hasOwn(value, key)) return undefined;
  return Reflect.get(value, key);
}
