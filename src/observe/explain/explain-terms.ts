import type { Address } from "../../protocol/hex.ts";
import { sameAddress } from "../../protocol/hex.ts";
import { type Finding, finding } from "../../protocol/mistakes.ts";
import {
  type Asset,
  builtInNetworks,
  type Network,
  type NetworkRegistry,
  type NetworkTier,
} from "../../protocol/networks.ts";
import { address } from "../../protocol/primitives.ts";
import { expiryMarginSeconds, usualMaxValiditySeconds } from "../../protocol/refusals.ts";
import {
  describeOne,
  formatAmount,
  type KnownTokens,
  knownToken,
  parseAmount,
  type TokenUnits,
  unitsOf,
} from "../../protocol/token-units.ts";
import { parseUint256 } from "../../protocol/wire-values.ts";
import { membersOf } from "../../util/json.ts";
import { showValue } from "../../util/text.ts";

/** What payments are compared with. */
export type ExplainContext = {
  /** The known networks; the built-in ones by default. */
  networks?: NetworkRegistry | undefined;
  /** The facilitator contract of each tier of networks. */
  contracts: Readonly<Record<NetworkTier, Address>>;
  /** The tokens that the facilitator takes; the USDC of each network by default. */
  tokens?: KnownTokens | undefined;
  /** Unix seconds, by the chain where there is one; undefined where the times of a payment are not to be judged. */
  now: bigint | undefined;
  /** Whose time `now` is, such as `this machine's clock`, where what is said of the times is to name it. */
  clock?: string | undefined;
  /** Whether the signature was found good, maybe by the payer's wallet contract, which is not asked here. */
  signatureHeld?: boolean | undefined;
};

/** One half of a request: the payment or the requirements. */
export type Side = {
  at: string;
  value: Record<string, unknown>;
  network: Network | undefined;
  /** Requirements in the short form of version 1, which leaves out scheme and payTo. */
  isShort: boolean;
};

/** What the seller asks for: amount, asset, payTo. */
export function explainTerms(
  { at, value, isShort }: Side,
  network: Network | undefined,
  context: ExplainContext,
): Finding[] {
  const findings: Finding[] = [];
  const amountName = amountMemberOf(value);
  const units = unitsAsked({ value, network }, context);
  findings.push(...explainNumber(`${at}.${amountName}`, value[amountName], units));
  if (value[amountName] === "0") {
    const facts = { got: '"0"', expected: "more than nothing" };
    findings.push(finding("amount-zero", `${at}.${amountName}`, facts));
  }
  if (network === undefined) return findings;

  const { networks = builtInNetworks, tokens } = context;
  const configured = tokens?.[network.name] ?? [];
  const taken = configured.length > 0 ? configured : [network.usdc];
  const { asset } = value;
  if (!isAddress(asset)) {
    const addresses = taken.map((token) => token.address).join(" or ");
    findings.push(missing(`${at}.asset`, asset, `the token's address, ${addresses}`));
  } else if (!taken.some(({ address }) => sameAddress(address, asset))) {
    const home = networks.all.find((one) => sameAddress(one.usdc.address, asset));
    const or = configured.length > 0 ? "" : ", or an asset that the facilitator was configured for";
    const listed = taken.map((token) => `${token.address} (${unitsOf(token).symbol} on ${network.name})`);
    findings.push(
      finding("wrong-asset", `${at}.asset`, {
        got: home === undefined ? asset : `${asset}, which is ${unitsOf(home.usdc).symbol} on ${home.name}`,
        expected: `${listed.join(" or ")}${or}`,
      }),
    );
  }
  const payTo = isShort ? (value.payTo === undefined ? value.recipient : value.payTo) : value.payTo;
  if (payTo !== undefined || !isShort) {
    findings.push(...explainContract("pay-to-is-not-the-contract", `${at}.payTo`, payTo, network, context));
  }
  return findings;
}

/** Whether an address is the facilitator contract of the network. */
export function explainContract(
  mistake: "pay-to-is-not-the-contract" | "signed-for-another-recipient",
  at: string,
  value: unknown,
  { tier, name }: Network,
  { contracts }: ExplainContext,
): Finding[] {
  const expected = `${contracts[tier]} (the facilitator contract on ${name})`;
  if (!isAddress(value)) return [missing(at, value, expected)];
  if (sameAddress(value, contracts[tier])) return [];
  const otherTier = sameAddress(value, contracts[tier === "mainnet" ? "testnet" : "mainnet"]);
  return [finding(otherTier ? "other-tier" : mistake, at, { got: value, expected })];
}

/** The token that one half names; undefined where it names none that is known. */
export function tokenAsked(
  { value, network }: Pick<Side, "value" | "network">,
  { tokens }: ExplainContext,
): Asset | undefined {
  return typeof value.asset === "string" ? knownToken(network, value.asset, tokens) : undefined;
}

/** How the amounts of one half are shown: in the units of its token, or of the network's USDC. */
export function unitsAsked(side: Pick<Side, "value" | "network">, context: ExplainContext): TokenUnits {
  const { network } = side;
  const configured = network && context.tokens?.[network.name]?.[0];
  const token = tokenAsked(side, context) ?? configured ?? network?.usdc;
  return unitsOf(token ?? { name: "USDC", decimals: 6 });
}

/** The member of requirements that says how much, by the version that they are of. */
export function amountMemberOf(terms: Record<string, unknown>): "amount" | "maxAmountRequired" {
  return terms.maxAmountRequired === undefined ? "amount" : "maxAmountRequired";
}

/** Whole tokens that no single payment is likely to ask for. */
const unlikelyTokens = 1_000_000n;

/** The decimals of ether, which are often taken for those of every token. */
const etherDecimals = 18;

/** What in an offer makes every payment for it fail, although each of its members can be read. */
export function explainOffer(at: string, offer: Record<string, unknown>, token: Asset): Finding[] {
  return [
    ...explainSize(at, offer, token),
    ...explainTimeout(`${at}.maxTimeoutSeconds`, offer.maxTimeoutSeconds),
    ...explainExtra(at, offer.extra, token),
  ];
}

/** Whether `extra` of requirements names the token as it names itself: clients sign for what stands there. */
export function explainExtra(at: string, extra: unknown, { name, version }: Asset): Finding[] {
  const named = membersOf(extra);
  if (named.name === name && named.version === version) return [];
  const given = extra === undefined ? extra : { name: named.name, version: named.version };
  return [
    finding("extra-differs", `${at}.extra`, {
      got: showValue(given),
      expected: JSON.stringify({ name, version }),
    }),
  ];
}

/** An amount that nobody means: of a token with few decimals, one that was counted with 18. */
function explainSize(at: string, offer: Record<string, unknown>, token: Asset): Finding[] {
  const name = amountMemberOf(offer);
  const text = offer[name];
  const amount = typeof text === "string" ? parseUint256(text) : null;
  const units = unitsOf(token);
  const excess = etherDecimals - units.decimals;
  if (amount === null || excess <= 0 || amount < unlikelyTokens * 10n ** BigInt(units.decimals)) return [];
  const meant = amount / 10n ** BigInt(excess);
  return [
    finding("amount-off-by-decimals", `${at}.${name}`, {
      got: `${amount} (${formatAmount(amount, units)})`,
      expected: `${meant} (${formatAmount(meant, units)}), if it was counted with ${etherDecimals} decimals`,
      fix: `Count in the token's smallest unit: ${describeOne(units)}.`,
    }),
  ];
}

/** Clients sign until `maxTimeoutSeconds` from now. */
function explainTimeout(at: string, seconds: unknown): Finding[] {
  if (typeof seconds !== "number") return [];
  if (seconds > Number(expiryMarginSeconds) && seconds <= Number(usualMaxValiditySeconds)) return [];
  const expected = `more than ${expiryMarginSeconds}, and at most ${usualMaxValiditySeconds} (a day)`;
  return [finding("timeout-out-of-range", at, { got: `${seconds}`, expected })];
}

/** Whether something is a uint256 as the protocol writes it; an amount of these units may be given in whole tokens. */
export function explainNumber(at: string, value: unknown, units: TokenUnits | undefined): Finding[] {
  if (typeof value === "string" && parseUint256(value) !== null) return [];
  if (typeof value === "string" && /^[1-9]\d{77,}$/.test(value)) {
    return [finding("number-too-large", at, { got: showValue(value), expected: "below 2^256" })];
  }
  const unreadable = missing(at, value, "a string of decimal digits");
  if (units === undefined) return [unreadable];
  const { symbol, decimals } = units;
  const text = typeof value === "string" && value.length < 100 ? value : "";
  const [, digits = "", unit = ""] = /^\$?(\d*\.?\d+)\s*(\D.*)?$/.exec(text) ?? [];
  const inTokens = parseAmount(digits, decimals);
  if (
    inTokens !== undefined &&
    ["", "usd", "usdc", "$", symbol.toLowerCase()].includes(unit.toLowerCase()) &&
    /[^\d\s]/.test(text)
  ) {
    return [finding("amount-in-dollars", at, { got: showValue(value), expected: `"${inTokens}"` })];
  }
  return [unreadable];
}

/** A member that is not there, or not what it is to be. */
export function missing(at: string, value: unknown, expected: string): Finding {
  return finding("missing-member", at, { got: showValue(value), expected });
}

export function isAddress(value: unknown): value is Address {
  return address.safeParse(value).success;
}
