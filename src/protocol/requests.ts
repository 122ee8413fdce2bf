import type { BuilderCodes } from "./builder-code.ts";
import { type Invalid, type InvalidPart, invalidAt } from "./catalogue.ts";
import { type Address, type Hex, isAddress, sameAddress } from "./hex.ts";
import { builtInNetworks, type Network, type NetworkRegistry } from "./networks.ts";
import {
  type PaymentIdentifier,
  paymentIdentifierExtension,
  readPaymentIdentifier,
} from "./payment-identifier.ts";
import { refusals } from "./refusals.ts";
import { type PaymentWords, type SignedPayment, settlementId } from "./signed-payment.ts";
import {
  inObject,
  MalformedError,
  optional,
  type Place,
  propertyOf,
  readSeconds,
  readText,
  readUint256,
  readWireAddress,
} from "./wire-values.ts";

export type X402Version = 1 | 2;

/** The members that are read even of a refused request; every answer repeats them. */
export type Envelope = {
  /** The version to answer in; 1 when the request's own could not be read. */
  x402Version: X402Version;
  /** As the caller spelled it; undefined when unreadable. */
  payer: string | undefined;
  /** The network as the caller spelled it; empty when unreadable. */
  network: string;
};

/** A well-formed request, independent of its version. */
export type PaymentRequest = Envelope & {
  /** The id of its settlement: computed once, since a hash takes longer than most checks. */
  settlementId: Hex;
  knownNetwork: Network;
  payment: SignedPayment;
  /** The names of its members in messages. */
  words: PaymentWords;
  /** The seller's terms; `amount` in the asset's smallest unit. */
  requirements: {
    amount: bigint;
    asset: Address;
    payTo: Address | undefined;
    /** Until when from now clients sign; only messages name it. */
    maxTimeoutSeconds?: number | undefined;
    /** As it came: by the public servers the name and version of the token's domain. Nothing is decided by it with `spec`. */
    extra?: unknown;
    /** Of version 1 without maxAmountRequired, or without payTo. */
    isShortForm?: true;
  };
  /** The payment's identifier by the payer's client, in version 2. */
  identifier?: PaymentIdentifier;
  /** The builder codes that it claims; read by the service alone, since only a chain keeps them. */
  codes?: BuilderCodes;
  /** The problem with its identifier, which is ignored where the strictness is `reference` and the shop requires none. */
  identifierProblem?: string;
};

export type ParsedRequest =
  /** `requiresIdentifier`: whether the shop does; see `identifierProblem` of the request. */
  | { ok: true; request: PaymentRequest; requiresIdentifier?: true }
  | { ok: false; envelope: Envelope; invalid: Invalid };

/** How one way to pay reads `paymentPayload.payload`. */
export type PayloadReader = {
  /** The scheme that offers and payments name, and the versions of the protocol that have it. */
  readonly scheme: string;
  readonly versions: readonly X402Version[];
  readonly words: PaymentWords;
  /** Returns true if a payload is of this way to pay, well formed or not. */
  owns(payload: unknown): boolean;
  /** Its payer, whatever the rest of it is like; not checked. */
  payerOf(payload: unknown): unknown;
  /**
   * @param extensions `paymentPayload.extensions` as it came; undefined in version 1, which has none
   * @throws MalformedError where a member is missing or malformed.
   */
  read(payload: Place, asset: Address, extensions: unknown): SignedPayment;
};

/** See {@link createRequestParser}. */
export type RequestParser = (body: unknown, known?: NetworkRegistry) => ParsedRequest;

/**
 * Makes what reads the JSON body of a verify or settle call of either version. Whatever the body is, the outcome is a
 * request or a refusal with its reason; the parser never throws. Types are not coerced.
 *
 * `known` are the networks that exist at all; the built-in ones by default.
 *
 * @param readers one for each way to pay; of those of its scheme, a payload is read by the first that owns it, and by the
 * last if none does
 */
export function createRequestParser(readers: readonly PayloadReader[]): RequestParser {
  const table: Readers = { all: readers, 1: bySchemes(readers, 1), 2: bySchemes(readers, 2) };
  return (body, known = builtInNetworks) => parse(body, known, table);
}

/** The readers of payloads: by version and scheme, and all of them. */
type Readers = Readonly<Record<X402Version, ReadonlyMap<string, readonly PayloadReader[]>>> & {
  readonly all: readonly PayloadReader[];
};

function bySchemes(
  readers: readonly PayloadReader[],
  version: X402Version,
): ReadonlyMap<string, readonly PayloadReader[]> {
  // Run when this is imported, where an old Node, without Map.groupBy, is still to be told which one is needed.
  const own = readers.filter(({ versions }) => versions.includes(version));
  return new Map(own.map(({ scheme }) => [scheme, own.filter((reader) => reader.scheme === scheme)]));
}

function parse(body: unknown, known: NetworkRegistry, readers: Readers): ParsedRequest {
  const envelope = readEnvelope(body, readers);
  const refuse = (refusal: Invalid): ParsedRequest => ({ ok: false, envelope, invalid: refusal });

  const payload = propertyOf(body, "paymentPayload");
  if (!isRecord(payload))
    return refuse(invalidAt("payload_malformed", "paymentPayload", " must be an object"));
  const version = propertyOf(payload, "x402Version");
  if (version !== 1 && version !== 2) {
    const form = typeof version === "string" ? "the number 1 or 2, not text" : "1 or 2";
    return refuse(invalidAt("version_unknown", "paymentPayload.x402Version", ` must be ${form}`));
  }
  const accepted = version === 1 ? payload : propertyOf(payload, "accepted");
  const acceptedAt = version === 1 ? "paymentPayload" : "paymentPayload.accepted";
  const namesScheme = propertyOf(payload, "scheme") !== undefined;
  const otherVersion = `, or x402Version ${3 - version}: this looks like a payment of version ${3 - version}`;
  if (!isRecord(accepted)) {
    const hint = namesScheme ? otherVersion : "";
    return refuse(invalidAt("payload_malformed", acceptedAt, ` must be an object${hint}`));
  }
  if (version === 1 && !namesScheme && isRecord(propertyOf(payload, "accepted"))) {
    return refuse(invalidAt("payload_malformed", `${acceptedAt}.scheme`, ` must be a string${otherVersion}`));
  }

  const context: Known = {
    known,
    version,
    schemes: [...readers[version].keys()],
    other: [...readers[version === 1 ? 2 : 1].keys()],
  };
  const named = readSchemeAndNetwork(context, accepted, acceptedAt, "payload");
  if ("reason" in named) return refuse(named);

  const requirements = propertyOf(body, "paymentRequirements");
  if (!isRecord(requirements)) {
    const problem = Array.isArray(requirements)
      ? " must be an object, not an array: the one of accepts that the payer chose"
      : " must be an object";
    return refuse(malformedRequirements("paymentRequirements", problem));
  }
  const isShort = version === 1 && propertyOf(requirements, "amount") !== undefined;
  const asked = readSchemeAndNetwork(
    context,
    requirements,
    "paymentRequirements",
    "requirements",
    isShort ? named.scheme : undefined,
  );
  if ("reason" in asked) return refuse(asked);
  if (asked.scheme !== named.scheme) return refuse(refusals.schemesDiffer(named.scheme, asked.scheme));
  if (asked.network !== named.network) {
    return refuse(refusals.networksDiffer(named.network.name, asked.network.name));
  }

  const terms = version === 1 ? readRequirementsV1(requirements) : readRequirementsV2(requirements);
  if ("reason" in terms) return refuse(terms);

  const given = propertyOf(payload, "payload");
  const able = readers[version].get(named.scheme) ?? [];
  const reader = able.find((one) => one.owns(given)) ?? able.at(-1);
  if (reader === undefined) throw new Error("a scheme without a way to pay was read");
  const ofOtherVersion = readers.all.find((one) => one.scheme === named.scheme && one.owns(given));
  if (ofOtherVersion !== undefined && !reader.owns(given)) {
    const problem = ` is that of a payment of x402Version ${ofOtherVersion.versions.join(" or ")}`;
    return refuse(invalidAt("payload_malformed", "paymentPayload.payload", problem));
  }
  const extensions = version === 1 ? undefined : propertyOf(payload, "extensions");
  const payment = unlessMalformed(
    () => reader.read({ value: given, path: "paymentPayload.payload" }, terms.asset, extensions),
    (at, problem) => invalidAt("payload_malformed", at, problem),
  );
  if ("reason" in payment) return refuse(payment);
  const identifier = version === 1 ? undefined : readIdentifier(payload);
  return {
    ok: true,
    ...(typeof identifier === "string" && requiresIdentifier(payload) && { requiresIdentifier: true }),
    request: {
      ...envelope,
      settlementId: settlementId(named.network.chainId, payment.nonceSpace, payment.payer, payment.nonce),
      knownNetwork: named.network,
      payment,
      words: reader.words,
      requirements: terms,
      ...(typeof identifier === "object" && { identifier }),
      ...(typeof identifier === "string" && { identifierProblem: identifier }),
    },
  };
}

function readIdentifier(payload: object): PaymentIdentifier | string | undefined {
  const extension = propertyOf(propertyOf(payload, "extensions"), paymentIdentifierExtension);
  return readPaymentIdentifier(extension, propertyOf(propertyOf(payload, "resource"), "url"));
}

function requiresIdentifier(payload: object): boolean {
  const extension = propertyOf(propertyOf(payload, "extensions"), paymentIdentifierExtension);
  return propertyOf(propertyOf(extension, "info"), "required") === true;
}

function readEnvelope(body: unknown, readers: Readers): Envelope {
  const payload = propertyOf(body, "paymentPayload");
  const requirements = propertyOf(body, "paymentRequirements");
  const x402Version = propertyOf(payload, "x402Version") === 2 ? 2 : 1;
  const candidates = [
    propertyOf(x402Version === 1 ? payload : propertyOf(payload, "accepted"), "network"),
    propertyOf(requirements, "network"),
  ];
  const signed = propertyOf(payload, "payload");
  const owner = readers.all.find((reader) => reader.owns(signed));
  const payer = owner?.payerOf(signed);
  return {
    x402Version,
    payer: isAddress(payer) ? payer : undefined,
    network: candidates.find((candidate) => typeof candidate === "string") ?? "",
  };
}

/** The networks and schemes of a version. */
type Known = {
  known: NetworkRegistry;
  version: X402Version;
  schemes: readonly string[];
  /** Those of the other version. */
  other: readonly string[];
};

/** @param usual the scheme that is meant where none is named; without it one must be named */
function readSchemeAndNetwork(
  { known, schemes, other, version }: Known,
  part: object,
  path: string,
  fault: InvalidPart,
  usual?: string,
): { scheme: string; network: Network } | Invalid {
  const malformed = (at: string): Invalid => invalidAt(`${fault}_malformed`, at, " must be a string");

  const given = propertyOf(part, "scheme");
  const scheme = given === undefined ? usual : given;
  if (typeof scheme !== "string") return malformed(`${path}.scheme`);
  if (!schemes.includes(scheme)) {
    const those = schemes.map((one) => JSON.stringify(one)).join(" or ");
    const elsewhere = other.includes(scheme) ? `, which needs version ${3 - version}` : "";
    const problem = ` must be ${those}, not ${JSON.stringify(scheme.slice(0, 40))}${elsewhere}`;
    return invalidAt(`scheme_of_${fault}`, `${path}.scheme`, problem);
  }
  const spelling = propertyOf(part, "network");
  if (typeof spelling !== "string") return malformed(`${path}.network`);
  const network = known.find(spelling, version);
  return network === undefined
    ? refusals.networkUnknown(path, spelling, { x402Version: version, fault }, known)
    : { scheme, network };
}

function readRequirementsV1(value: object): PaymentRequest["requirements"] | Invalid {
  return unlessMalformed(() => {
    const requirements = inObject({ value, path: "paymentRequirements" });
    const maxAmountRequired = optional(requirements("maxAmountRequired"), readUint256);
    const amount = optional(requirements("amount"), readUint256);
    const payTo = optional(requirements("payTo"), readWireAddress);
    const recipient = optional(requirements("recipient"), readWireAddress);
    const asset = readWireAddress(requirements("asset"));
    // Checked, but not used. Public servers write null for what they do not know.
    for (const name of ["resource", "description", "mimeType"]) {
      if (requirements(name).value !== null) optional(requirements(name), readText);
    }
    const maxTimeoutSeconds = optional(requirements("maxTimeoutSeconds"), readSeconds);

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
        " must be an address: that of the facilitator contract, unless PAY_TO allows others",
      );
    }
    if (payTo !== undefined && recipient !== undefined && !sameAddress(payTo, recipient)) {
      return malformedRequirements("paymentRequirements.recipient", " and payTo must be equal");
    }
    const isShortForm = maxAmountRequired === undefined || payTo === undefined;
    return {
      amount: required,
      asset,
      payTo: payTo ?? recipient,
      maxTimeoutSeconds,
      extra: propertyOf(value, "extra"),
      ...(isShortForm && { isShortForm: true }),
    };
  }, malformedRequirements);
}

function readRequirementsV2(value: object): PaymentRequest["requirements"] | Invalid {
  return unlessMalformed(() => {
    const requirements = inObject({ value, path: "paymentRequirements" });
    const amount = readUint256(requirements("amount"));
    const asset = readWireAddress(requirements("asset"));
    const payTo = readWireAddress(requirements("payTo"));
    const maxTimeoutSeconds = optional(requirements("maxTimeoutSeconds"), readSeconds);
    return { amount, asset, payTo, maxTimeoutSeconds, extra: propertyOf(value, "extra") };
  }, malformedRequirements);
}

/** Gives the result of `read`, or the refusal for the malformed value that it meets. */
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
