import type { BuilderCodes } from "./builder-code.ts";
import { type Invalid, type InvalidPart, invalidAt } from "./catalogue.ts";
import { type Address, type Hex, isAddress, sameAddress } from "./hex.ts";
import { builtInNetworks, formatNetwork, type Network, type NetworkRegistry } from "./networks.ts";
import {
  type PaymentIdentifier,
  paymentIdentifierExtension,
  readPaymentIdentifier,
} from "./payment-identifier.ts";
import { refusals } from "./refusals.ts";
import { type PaymentWords, type SignedPayment, settlementId } from "./signed-payment.ts";
import {
  isRecord,
  optional,
  type Part,
  propertyOf,
  readPart,
  readSeconds,
  readText,
  readUint256,
  readWireAddress,
  zeroAddress,
} from "./wire-values.ts";

export type X402Version = 1 | 2;

/** The members that are read even from a refused request; every response repeats them. */
export type Envelope = {
  /** The version to respond in; 1 if the request's own could not be read. */
  x402Version: X402Version;
  /** As the caller spelled it; undefined if unreadable. */
  payer: string | undefined;
  /** As the caller spelled it; empty if unreadable. */
  network: string;
};

/** A well-formed request, independent of its version. */
export type PaymentRequest = Envelope & {
  /** The id of its settlement; computed once, since a hash takes longer than most checks. */
  settlementId: Hex;
  knownNetwork: Network;
  payment: SignedPayment;
  /** The names of its members in messages. */
  words: PaymentWords;
  /** The seller's terms; `amount` is in the asset's smallest unit. */
  requirements: {
    amount: bigint;
    asset: Address;
    payTo: Address | undefined;
    /** How long from now clients sign for, in seconds; used only in messages. */
    maxTimeoutSeconds?: number | undefined;
    /** As received: from public servers the name and version of the token's domain. With `spec` nothing depends on it. */
    extra?: unknown;
    /** Set for version 1 without maxAmountRequired or payTo. */
    isShortForm?: true;
  };
  /** The identifier that the payer's client gave the payment, in version 2. */
  identifier?: PaymentIdentifier;
  /** The builder codes that it claims; read only by the service, since only a chain stores them. */
  codes?: BuilderCodes;
  /** The problem with its identifier, ignored if the strictness is `reference` and the shop requires no identifier. */
  identifierProblem?: string;
};

export type ParsedRequest = ({ ok: true } & Reading) | { ok: false; envelope: Envelope; invalid: Invalid };

/** `requiresIdentifier`: set if the shop requires an identifier; see `identifierProblem`. */
type Reading = { request: PaymentRequest; requiresIdentifier?: true };

/** How a payment method reads `paymentPayload.payload`. */
export type PayloadReader = {
  /** The scheme that offers and payments name, and the protocol versions that have it. */
  readonly scheme: string;
  readonly versions: readonly X402Version[];
  readonly words: PaymentWords;
  /** True if a payload belongs to this payment method, well-formed or not. */
  owns(payload: unknown): boolean;
  /** The payload's payer, unchecked, whatever the rest is like. */
  payerOf(payload: unknown): unknown;
  /** @param extensions `paymentPayload.extensions` as received; undefined in version 1, which has none */
  read(payload: Part, asset: Address, extensions: unknown): SignedPayment;
};

/** See {@link createRequestParser}. */
export type RequestParser = (body: unknown, known?: NetworkRegistry) => ParsedRequest;

/** Called with a fault in a request. It throws to stop; if it returns, reading continues. */
export type OnFault = (fault: Invalid) => void;

/** See {@link createRequestReader}. */
export type RequestReader = (
  body: unknown,
  known: NetworkRegistry,
  onFault: OnFault,
) => PaymentRequest | undefined;

/** Stops reading at a fault. */
class Refused extends Error {
  readonly invalid: Invalid;

  constructor(invalid: Invalid) {
    super(invalid.message);
    this.invalid = invalid;
  }
}

function stop(fault: Invalid): never {
  throw new Refused(fault);
}

/**
 * Creates a parser for the JSON body of a verify or settle call in either version. Any body results in a request, or
 * in a refusal with its reason; the parser never throws. Types are not coerced.
 *
 * `known` are all networks that exist; by default the built-in ones.
 *
 * @param readers one per payment method; among those of its scheme, the first that owns a payload reads it, or the
 * last if none does
 * @param late further version 2 schemes that are accepted and have readers elsewhere
 */
export function createRequestParser(
  readers: readonly PayloadReader[],
  late: readonly string[] = [],
): RequestParser {
  const table = tableOf(readers, late);
  return (body, known = builtInNetworks) => {
    try {
      const reading = read(body, { known, readers: table, onFault: stop });
      if (reading === undefined) throw new Error("a request without a fault was not read");
      return { ok: true, ...reading };
    } catch (error) {
      if (error instanceof Refused) {
        return { ok: false, envelope: readEnvelope(body, table), invalid: error.invalid };
      }
      throw error;
    }
  };
}

/**
 * Creates a reader for explaining requests: it calls `onFault` with every fault, in the order in which a parser would
 * meet them. Malformed values become zeros, so the request is only good for explaining. Undefined if there is no
 * payment or no network is named.
 */
export function createRequestReader(readers: readonly PayloadReader[]): RequestReader {
  const table = tableOf(readers);
  return (body, known, onFault) => read(body, { known, readers: table, onFault })?.request;
}

/** The readers of payloads, by version and scheme, and all of them. */
type Readers = Readonly<Record<X402Version, ReadonlyMap<string, readonly PayloadReader[]>>> & {
  readonly all: readonly PayloadReader[];
  readonly late: readonly string[];
};

function tableOf(all: readonly PayloadReader[], late: readonly string[] = []): Readers {
  return { all, late, 1: bySchemes(all, 1), 2: bySchemes(all, 2) };
}

function bySchemes(
  readers: readonly PayloadReader[],
  version: X402Version,
): ReadonlyMap<string, readonly PayloadReader[]> {
  // This runs at import, before an old Node without Map.groupBy can report which version is needed.
  const own = readers.filter(({ versions }) => versions.includes(version));
  return new Map(own.map(({ scheme }) => [scheme, own.filter((reader) => reader.scheme === scheme)]));
}

type Context = { known: NetworkRegistry; readers: Readers; onFault: OnFault };

function read(body: unknown, context: Context): Reading | undefined {
  const { readers, onFault } = context;
  const payload = propertyOf(body, "paymentPayload");
  if (!isRecord(payload)) {
    onFault(invalidAt("payload_malformed", "paymentPayload", " must be an object"));
    return undefined;
  }
  const version = readVersion(payload, onFault);
  const accepted = version === 1 ? payload : propertyOf(payload, "accepted");
  const acceptedAt = version === 1 ? "paymentPayload" : "paymentPayload.accepted";
  // If it is not an object, reading the version has already refused it.
  const paid = isRecord(accepted)
    ? readSchemeAndNetwork(context, version, { part: accepted, path: acceptedAt, fault: "payload" })
    : {};

  const requirements = propertyOf(body, "paymentRequirements");
  if (!isRecord(requirements)) {
    const hint = Array.isArray(requirements) ? ", not an array: the one of accepts that the payer chose" : "";
    onFault(invalidAt("requirements_malformed", "paymentRequirements", ` must be an object${hint}`));
  }
  const isShort = version === 1 && propertyOf(requirements, "amount") !== undefined;
  const asked = isRecord(requirements)
    ? readSchemeAndNetwork(context, version, {
        part: requirements,
        path: "paymentRequirements",
        fault: "requirements",
        usual: isShort ? (paid.scheme ?? "exact") : undefined,
      })
    : {};
  const { scheme = asked.scheme, network = asked.network } = paid;
  if (scheme !== undefined && asked.scheme !== undefined && asked.scheme !== scheme) {
    onFault(refusals.schemesDiffer(scheme, asked.scheme));
  }
  if (network !== undefined && asked.network !== undefined && asked.network !== network) {
    onFault(refusals.networksDiffer(network.name, asked.network.name));
  }

  const readTerms = version === 1 ? readTermsV1 : readTermsV2;
  const terms = isRecord(requirements) ? readTerms(requirements, onFault) : noTerms;
  const given = propertyOf(payload, "payload");
  const reader = readerOf(given, { readers, onFault }, version, scheme);
  const part = readPart(given, "paymentPayload.payload", (at, problem) =>
    onFault(invalidAt("payload_malformed", at, `: ${problem}`)),
  );
  const extensions = version === 1 ? undefined : propertyOf(payload, "extensions");
  const payment = reader.read(part, terms.asset, extensions);
  if (network === undefined) return undefined;
  const identifier = version === 1 ? undefined : readIdentifier(payload);
  return {
    ...(typeof identifier === "string" && requiresIdentifier(payload) && { requiresIdentifier: true }),
    request: {
      x402Version: version,
      payer: payment.payer,
      network: formatNetwork(network, version),
      settlementId: settlementId(network.chainId, payment.nonceSpace, payment.payer, payment.nonce),
      knownNetwork: network,
      payment,
      words: reader.words,
      requirements: terms,
      ...(typeof identifier === "object" && { identifier }),
      ...(typeof identifier === "string" && { identifierProblem: identifier }),
    },
  };
}

/** Reads the version of a payment. If reading continues after a fault, it is the version that the members suggest. */
function readVersion(payload: object, onFault: OnFault): X402Version {
  const version = propertyOf(payload, "x402Version");
  const hasAccepted = isRecord(propertyOf(payload, "accepted"));
  const namesScheme = propertyOf(payload, "scheme") !== undefined;
  if (version !== 1 && version !== 2) {
    const form = typeof version === "string" ? "the number 1 or 2, not text" : "1 or 2";
    onFault(invalidAt("version_unknown", "paymentPayload.x402Version", ` must be ${form}`));
    return hasAccepted ? 2 : 1;
  }
  if (version === 2 ? hasAccepted : namesScheme || !hasAccepted) return version;
  const other = version === 1 ? 2 : 1;
  const hint = `, or x402Version ${other}: this looks like a payment of version ${other}`;
  const [at, form] = version === 1 ? ["scheme", "a string"] : ["accepted", "an object"];
  const isOther = version === 1 || namesScheme;
  const fault = invalidAt(
    "payload_malformed",
    `paymentPayload.${at}`,
    ` must be ${form}${isOther ? hint : ""}`,
  );
  if (!isOther) {
    onFault(fault);
    return version;
  }
  onFault({ ...fault, got: `${version}`, expected: `${other}, going by its members` });
  return other;
}

/** Finds the reader for a payload. */
function readerOf(
  payload: unknown,
  { readers, onFault }: Pick<Context, "readers" | "onFault">,
  version: X402Version,
  scheme: string | undefined,
): PayloadReader {
  const able = readers[version].get(scheme ?? "") ?? readers.all;
  const owner = able.find((one) => one.owns(payload));
  if (owner !== undefined) return owner;
  const other = readers.all.find((one) => one.scheme === scheme && one.owns(payload));
  if (other !== undefined) {
    const problem = ` is that of a payment of x402Version ${other.versions.join(" or ")}`;
    onFault(invalidAt("payload_malformed", "paymentPayload.payload", problem));
  }
  const reader = other ?? able.at(-1);
  if (reader === undefined) throw new Error("there is no way to pay");
  return reader;
}

function readIdentifier(payload: object): PaymentIdentifier | string | undefined {
  const extension = propertyOf(propertyOf(payload, "extensions"), paymentIdentifierExtension);
  return readPaymentIdentifier(extension, propertyOf(propertyOf(payload, "resource"), "url"));
}

function requiresIdentifier(payload: object): boolean {
  const extension = propertyOf(propertyOf(payload, "extensions"), paymentIdentifierExtension);
  return propertyOf(propertyOf(extension, "info"), "required") === true;
}

/** Reads what the response to a refused request repeats, whatever the rest is like. */
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

/** Half of a request, its path, and its default scheme; without a default it must name one. */
type Half = { part: object; path: string; fault: InvalidPart; usual?: string | undefined };

/** Reads the scheme and network of one half. After a fault, a network in the other version's spelling is accepted. */
function readSchemeAndNetwork(
  { known, readers, onFault }: Context,
  version: X402Version,
  { part, path, fault, usual }: Half,
): { scheme?: string | undefined; network?: Network | undefined } {
  const other = version === 1 ? 2 : 1;
  const given = propertyOf(part, "scheme");
  const scheme = given === undefined ? usual : given;
  const isKnown = typeof scheme === "string" && readers[version].has(scheme);
  if (typeof scheme !== "string") {
    onFault(invalidAt(`${fault}_malformed`, `${path}.scheme`, " must be a string"));
  } else if (!isKnown) {
    const listed = [...readers[version].keys(), ...(version === 2 ? readers.late : [])];
    const those = listed.map((one) => JSON.stringify(one)).join(" or ");
    const elsewhere = readers[other].has(scheme) ? `, which needs version ${other}` : "";
    const problem = ` must be ${those}, not ${JSON.stringify(scheme.slice(0, 40))}${elsewhere}`;
    onFault(invalidAt(`scheme_of_${fault}`, `${path}.scheme`, problem));
  }
  const named = isKnown ? scheme : undefined;
  const spelling = propertyOf(part, "network");
  if (typeof spelling !== "string") {
    onFault(invalidAt(`${fault}_malformed`, `${path}.network`, " must be a string"));
    return { scheme: named };
  }
  const network = known.find(spelling, version);
  if (network !== undefined) return { scheme: named, network };
  onFault(refusals.networkUnknown(path, spelling, { x402Version: version, fault }, known));
  return { scheme: named, network: known.find(spelling, other) };
}

/** Stands in for requirements that are not an object. */
const noTerms: PaymentRequest["requirements"] = { amount: 0n, asset: zeroAddress, payTo: undefined };

function partOfTerms(members: Part["members"], onFault: OnFault): Part {
  const onMalformed = (at: string, problem: string) =>
    onFault(invalidAt("requirements_malformed", at, `: ${problem}`));
  return { members, path: "paymentRequirements", onMalformed };
}

function readTermsV1(members: Part["members"], onFault: OnFault): PaymentRequest["requirements"] {
  const part = partOfTerms(members, onFault);
  const refuse = (at: string, problem: string) => onFault(invalidAt("requirements_malformed", at, problem));
  const maxAmountRequired = optional(part, "maxAmountRequired", readUint256);
  const amount = optional(part, "amount", readUint256);
  const payTo = optional(part, "payTo", readWireAddress);
  const recipient = optional(part, "recipient", readWireAddress);
  const asset = readWireAddress(part, "asset");
  // Validated but not used. Public servers write null for unknown values.
  for (const name of ["resource", "description", "mimeType"]) {
    if (part.members[name] !== null) optional(part, name, readText);
  }
  const maxTimeoutSeconds = optional(part, "maxTimeoutSeconds", readSeconds);

  const required = maxAmountRequired ?? amount;
  if (required === undefined) {
    refuse("paymentRequirements", " needs maxAmountRequired (or amount, in the short form)");
  } else if (amount !== undefined && amount !== required) {
    refuse("paymentRequirements.amount", " and maxAmountRequired must be equal");
  }
  if (amount === undefined && payTo === undefined) {
    const problem = " must be an address: that of the facilitator contract, unless PAY_TO allows others";
    refuse("paymentRequirements.payTo", problem);
  }
  if (payTo !== undefined && recipient !== undefined && !sameAddress(payTo, recipient)) {
    refuse("paymentRequirements.recipient", " and payTo must be equal");
  }
  const isShortForm = maxAmountRequired === undefined || payTo === undefined;
  return {
    amount: required ?? 0n,
    asset,
    payTo: payTo ?? recipient,
    maxTimeoutSeconds,
    extra: part.members.extra,
    ...(isShortForm && { isShortForm: true }),
  };
}

function readTermsV2(members: Part["members"], onFault: OnFault): PaymentRequest["requirements"] {
  const part = partOfTerms(members, onFault);
  return {
    amount: readUint256(part, "amount"),
    asset: readWireAddress(part, "asset"),
    payTo: readWireAddress(part, "payTo"),
    maxTimeoutSeconds: optional(part, "maxTimeoutSeconds", readSeconds),
    extra: part.members.extra,
  };
}
