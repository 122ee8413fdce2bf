import { readHeadTime } from "../../chain/rpc/calls.ts";
import { createLocalRpc } from "../../chain/rpc/local-rpc.ts";
import {
  type Authorization,
  type AuthorizationSigner,
  signAuthorization,
} from "../../methods/exact-eip3009/authorization.ts";
import { buildPaymentRequest } from "../../methods/exact-eip3009/payload.ts";
import { forTimes, timesFrom } from "../../methods/exact-eip3009/payment-times.ts";
import { type Hex, isBytes32 } from "../../protocol/hex.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import type { Operation } from "../../protocol/problems.ts";
import type { X402Version } from "../../protocol/requests.ts";
import { createPayerSigner, signAs } from "../../published/sign-as.ts";
import { type TestPayerName, testPayers } from "../../published/test-payers.ts";
import { KitError } from "../../util/errors.ts";
import {
  aFunction,
  anObject,
  anything,
  aText,
  aTextOrObject,
  aUint256,
  needed,
  oneOf,
  requireGiven,
  type Wanted,
  wholeNumber,
} from "../../util/given.ts";
import { type JsonResponse, requestJson } from "../../util/http-client.ts";
import type { HarnessDescription } from "./description.ts";
import { requireRunning } from "./find-harness.ts";

/** Who pays: a test payer by its name, a private key, or whatever signs typed data, such as a viem account. */
export type Payer = TestPayerName | Hex | AuthorizationSigner;

/** What to pay, and who pays. */
export type PaymentSpec<N extends NetworkName = NetworkName> = {
  network: N;
  /** The test payer `funded` by default. */
  payer?: Payer;
  /** In the asset's smallest unit; 10,000 (0.01 USDC) by default. */
  amount?: bigint;
  /** 1 by default. */
  x402Version?: X402Version;
  /** Seconds from the chain's time until the authorization expires; 600 by default. */
  validForSeconds?: number;
  /** The URL that is paid for. */
  resource?: string;
  /** Members of the authorization that are to be signed as they stand here, right or wrong. */
  authorization?: Partial<Omit<Authorization, "from">>;
};

/** The kind of value that each member of a payment takes. */
export const paymentSpec: Readonly<Record<keyof PaymentSpec, Wanted>> = {
  network: needed(aText),
  payer: aTextOrObject,
  amount: anything,
  x402Version: oneOf([1, 2]),
  // A second from the first day of unix time, to one that no chain will see.
  validForSeconds: wholeNumber(-1_000_000_000, 1_000_000_000_000),
  resource: aText,
  authorization: anObject,
};

const signedMembers: Readonly<Record<keyof Omit<Authorization, "from">, Wanted>> = {
  to: aText,
  value: aUint256,
  ...forTimes(() => aUint256),
  nonce: aText,
};

/** The body of a verify or settle call, and what is signed in it. */
export type SignedPayment = { request: Record<string, unknown>; authorization: Authorization };

/** What the service answered to one payment, and how long both answers took together. */
export type PaymentReport = { verify: JsonResponse; settle: JsonResponse; tookMs: number };

/**
 * A signed payment, which has not been sent anywhere.
 *
 * @throws {ConfigurationError} when something of the spec is of the wrong kind, or there is no such option
 * @throws {KitError} when the network does not run, or there is no such payer
 */
export async function signPayment(
  harness: Pick<HarnessDescription, "networks">,
  spec: PaymentSpec,
  nonce?: Hex,
): Promise<SignedPayment> {
  requireGiven(spec, paymentSpec);
  if (spec.authorization !== undefined) requireGiven(spec.authorization, signedMembers, "authorization");
  const { network, payer = "funded", amount = 10_000n, x402Version = 1, validForSeconds = 600 } = spec;
  const running = requireRunning(harness, network);
  if (!aUint256.fits(amount)) {
    throw new KitError(
      `An amount is a bigint below 2^256 in the asset's smallest unit, such as 10_000n, not ${amount}`,
    );
  }
  if (payer === "blacklisted" && running.fork?.hasBlacklist === false) {
    throw new KitError(
      `The token of the fork of ${network} has no blacklist: "blacklisted" pays as others do`,
      {
        hints: ["Try what becomes of a blacklisted payer without a fork."],
      },
    );
  }
  const { asset, chainId, facilitatorContract, rpcUrl } = running;
  const now = await readHeadTime(createLocalRpc(rpcUrl), network);
  const { authorization, signature } = await signWith(payer, {
    asset,
    chainId,
    to: facilitatorContract,
    value: amount,
    ...timesFrom(now, { until: validForSeconds }),
    ...(nonce !== undefined && { nonce }),
    ...spec.authorization,
  });
  const request = buildPaymentRequest({
    x402Version,
    network: { name: network, caip2: running.caip2 },
    asset,
    payTo: facilitatorContract,
    amount,
    resource: spec.resource ?? "https://merchant.example/resource",
    authorization,
    signature,
  });
  return { request, authorization };
}

/**
 * Pays once on a running harness, as an x402 server would: verify, then settle, over HTTP.
 *
 * @param onAnswer called with each answer as it comes
 * @throws {KitError} when there is no answer to one of them, or none that is JSON
 */
export async function pay(
  harness: HarnessDescription,
  spec: PaymentSpec,
  onAnswer: (operation: Operation, answer: JsonResponse) => void = () => {},
): Promise<PaymentReport> {
  const { request } = await signPayment(harness, spec);
  const from = performance.now();
  const verify = await postPayment(harness, "verify", request);
  onAnswer("verify", verify);
  const settle = await postPayment(harness, "settle", request);
  onAnswer("settle", settle);
  return { verify, settle, tookMs: performance.now() - from };
}

/** Posts the body of a payment to the service with the organization's key. */
export function postPayment(
  harness: { facilitator: { url: string }; organization: { apiKey: string } },
  operation: Operation,
  body: Record<string, unknown>,
  headers: Record<string, string> = {},
): Promise<JsonResponse> {
  return requestJson(`${harness.facilitator.url}/${operation}`, {
    method: "POST",
    headers: { authorization: harness.organization.apiKey, ...headers },
    body,
  });
}

function signWith(payer: Payer, terms: Parameters<typeof signAs>[1]): ReturnType<typeof signAs> {
  if (typeof payer === "string") {
    return isTestPayer(payer) ? signAs(payer, terms) : signAuthorization(signerOf(payer), terms);
  }
  if (!aText.fits(payer.address) || !aFunction.fits(payer.signTypedData)) throw noPayer();
  return signAuthorization(payer, terms);
}

function isTestPayer(payer: string): payer is TestPayerName {
  return Object.hasOwn(testPayers, payer);
}

function signerOf(key: string): AuthorizationSigner {
  if (isBytes32(key)) {
    try {
      return createPayerSigner(key);
    } catch {
      // Outside the curve's order: wrong like what is no key at all.
    }
  }
  throw noPayer();
}

const noPayer = () =>
  new KitError(
    `The payer is neither a test payer (${Object.keys(testPayers).join(", ")}) nor a private key`,
    {
      hints: ["A private key is 0x and 64 hexadecimal digits. A viem account works too."],
    },
  );
