import { type Scheme, schemes, transferMethods } from "../methods/method-lists.ts";
import type { TransferMethod } from "../methods/methods.ts";
import type { Address } from "../protocol/hex.ts";
import type { Asset, NetworkName } from "../protocol/networks.ts";
import type { X402Version } from "../protocol/requests.ts";
import { parseAmount, type TokenUnits, unitsOf } from "../protocol/token-units.ts";
import { parseUint256 } from "../protocol/wire-values.ts";
import { KitError } from "../util/errors.ts";
import { aText, aTextOrObject, aUint256, oneOf, type Wanted, wholeNumber } from "../util/given.ts";
import { type LocalTokenName, localTokenNames } from "./local-chains.ts";
import type { TestPayerName } from "./test-payers.ts";

/** An amount: a string in whole tokens (`"0.01"`, `"$0.01"`), or a bigint in the token's smallest unit. */
export type Amount = bigint | string;

/** The format of an amount in whole tokens. */
export const amountForm = /^\$?(\d{1,78}(?:\.\d{1,60})?|\.\d{1,60})$/;

export const anAmount: Wanted = {
  what: "an amount: whole tokens as a text, or a bigint below 2^256 in the smallest unit",
  fits: (value) => (typeof value === "string" ? amountForm.test(value) : aUint256.fits(value)),
  example: '"0.01"',
};

/** The units for strings that count a token's smallest unit. */
export const smallestUnit: TokenUnits = { symbol: "the smallest unit", decimals: 0 };

/**
 * Parses an amount in whole tokens.
 *
 * @returns the amount in the smallest unit
 * @throws {KitError} if it has more decimals than the token, or is 2^256 or more in the smallest unit
 */
export function readAmount(text: string, { symbol, decimals }: TokenUnits): bigint {
  const units = parseAmount(text.replace("$", ""), decimals);
  if (units === undefined) throw new KitError(`${text} has too many decimals: ${symbol} has ${decimals}`);
  if (parseUint256(units) === null) throw new KitError(`${text} is more than any token can count`);
  return BigInt(units);
}

/** Converts an amount to the token's smallest unit. */
export function toUnits(amount: Amount, token: Pick<Asset, "name" | "symbol" | "decimals">): bigint {
  return typeof amount === "bigint" ? amount : readAmount(amount, unitsOf(token));
}

/** The terms of a payment to sign. The default is 0.01 USDC from the funded payer, valid for ten minutes. */
export type PaymentTerms<N extends NetworkName = NetworkName, Payer = TestPayerName> = {
  /** Default: the test payer `funded`. */
  payer?: Payer | undefined;
  /** Default: the first network. */
  network?: N | undefined;
  /** The token's name in `networks.NAME.tokens`, such as "plain"; these are paid with Permit2. Default: USDC. */
  asset?: LocalTokenName | undefined;
  /**
   * A string in whole tokens (`"0.01"`), or a bigint in the smallest unit. Default: a hundredth of a token. In scheme
   * "upto", the amount that settle takes; default: all of `max`.
   */
  amount?: Amount | undefined;
  /** Default: "exact". */
  scheme?: Scheme | undefined;
  /** Default: the scheme's first method that can move the asset. */
  method?: TransferMethod | undefined;
  /** Scheme "upto": the most that settle may take. Default: `amount`, but at least a hundredth of a token. */
  max?: Amount | undefined;
  /** Default: the facilitator contract, or the organization's recipient if the option `payTo` allows that. */
  payTo?: Address | undefined;
  /** Default: 2. */
  x402Version?: X402Version | undefined;
  /** Seconds from the chain's time until the payment expires. Default: 600. */
  validForSeconds?: number | undefined;
  resource?: string | undefined;
};

/** The defaults that are the same everywhere. */
export const usual = {
  payer: "funded",
  scheme: "exact",
  x402Version: 2,
  validForSeconds: 600,
  resource: "https://merchant.example/resource",
} as const satisfies PaymentTerms;

/** The type of a field, and its description in help and in OpenAPI. */
type Term = Wanted & { help: string };

/** The fields of a payment's terms, for every call that signs one. */
export const paymentTerms = {
  payer: { ...aTextOrObject, help: "a test payer by its name, or a private key" },
  network: { ...aText, help: "where to pay: base, or eip155:8453; the first one by default" },
  asset: { ...oneOf(localTokenNames), help: `the token: ${localTokenNames.join(", ")} (default: USDC)` },
  amount: {
    ...anAmount,
    help: "how much, in whole tokens (0.01, 1) (default: 0.01); of scheme upto what settle takes",
  },
  scheme: {
    ...oneOf(schemes),
    help: `${schemes.join(", ")} (default: ${usual.scheme}); of upto settle may take less than what is signed`,
  },
  method: {
    ...oneOf(transferMethods),
    help: `how the tokens move: ${transferMethods.join(" or ")} (default: ${transferMethods[0]} in USDC)`,
  },
  max: { ...anAmount, help: "of scheme upto: the most that settle may take" },
  payTo: {
    ...aText,
    help: "where it goes (default: the facilitator contract; the organization's wallet where `up --pay-to` allows that)",
  },
  x402Version: { ...oneOf([1, 2]), help: "x402 protocol version, 1 or 2" },
  validForSeconds: {
    // The lower bound keeps the expiry time positive; the upper bound is later than any chain will see.
    ...wholeNumber(-1_000_000_000, 1_000_000_000_000),
    help: "seconds from the chain's time until it expires",
  },
  resource: { ...aText, help: "the URL that is paid for" },
} as const satisfies Readonly<Record<keyof PaymentTerms, Term>>;
