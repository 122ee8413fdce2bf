import { askNode, readHeadTime } from "../../chain/rpc/calls.ts";
import { createLocalRpc } from "../../chain/rpc/local-rpc.ts";
import { settleWaitBoundsMs } from "../../config/serve-config.ts";
import type { WrittenRequest } from "../../methods/build-request.ts";
import { methodsOf } from "../../methods/method-lists.ts";
import { methods } from "../../methods/methods.ts";
import { type PayerTerms, type SignedInstead, signedInstead } from "../../methods/payer-terms.ts";
import type { PayerSigner } from "../../methods/permit2/sign-permit.ts";
import { createPayerSigner, isTestPayer, noPayer, signerNamed } from "../../payer/sign-as.ts";
import { agree, bodiesOf, type KeySigner, type Offer, signOffer } from "../../payer/sign-payment.ts";
import { type PaymentTerms, paymentTerms, usual } from "../../payer/terms.ts";
import { type TestPayerName, testPayers } from "../../payer/test-payers.ts";
import { settleAnswerSchema, verifyAnswerSchema } from "../../protocol/answers.ts";
import type { Hex } from "../../protocol/hex.ts";
import type { Asset, NetworkName } from "../../protocol/networks.ts";
import type { Operation } from "../../protocol/problems.ts";
import type { SignedPayment } from "../../protocol/signed-payment.ts";
import { KitError } from "../../util/errors.ts";
import { aBoolean, aFunction, anObject, aText, needed, requireGiven, type Wanted } from "../../util/given.ts";
import { answersWithinMs, type JsonResponse, requestJson } from "../../util/http-client.ts";
import { membersOf } from "../../util/json.ts";
import { requireAccount } from "../run/running-harness.ts";
import {
  type Access,
  type HarnessDescription,
  networksOf,
  type Running,
  type RunningNetwork,
  requireRunning,
} from "./description.ts";

/** A payer: a test payer by name, a private key, or anything that signs typed data, such as a viem account. */
export type Payer = TestPayerName | Hex | PayerSigner;

/** The payment to make, and its payer. */
export type PaymentSpec<N extends NetworkName = NetworkName> = PaymentTerms<N, Payer> &
  SignedInstead & {
    network: N;
    /**
     * Attaches an approval, for methods where payers approve a contract; none by default. `true` attaches an EIP-2612 permit
     * (extension `eip2612GasSponsoring`), which is submitted with the payment if the allowance is too low. `"transaction"`
     * attaches a transaction signed by the payer (`erc20ApprovalGasSponsoring`), which is sent before the payment.
     */
    approval?: boolean | "transaction" | undefined;
  };

/** The expected type of each field of a payment spec. */
export const paymentSpec: Readonly<Record<keyof PaymentSpec, Wanted>> = {
  ...paymentTerms,
  network: needed(aText),
  authorization: anObject,
  permit: anObject,
  approval: {
    what: 'true, false or "transaction"',
    fits: (value) => aBoolean.fits(value) || value === "transaction",
  },
};

export type SignedBodies = Record<"request" | "settleRequest", WrittenRequest> & { payment: SignedPayment };

/** The service's answers to one payment, and the total time. */
export type PaymentReport = { verify: JsonResponse; settle: JsonResponse; tookMs: number };

/**
 * Signs a payment without sending it.
 *
 * @param instead values to sign in place of those of the offer
 * @throws {ConfigurationError} if a field of the spec has the wrong type, or is unknown
 * @throws {KitError} if the network does not run, or there is no such payer
 */
export async function signPayment(
  harness: Running,
  spec: PaymentSpec,
  instead: Partial<PayerTerms> = {},
): Promise<SignedBodies> {
  requireGiven(spec, paymentSpec);
  for (const [option, members] of Object.entries(signedInstead)) {
    const given = membersOf(spec)[option];
    if (given !== undefined) requireGiven(given, members, option);
  }
  const { network, payer = usual.payer, approval = false, authorization, permit } = spec;
  const running = requireRunning(harness, network);
  const offer = agree(spec, [{ ...running, name: network }]);
  if (approval !== false) requireApproved(offer);
  if (payer === "blacklisted" && running.fork?.hasBlacklist === false) {
    throw new KitError(
      `The token of the fork of ${network} has no blacklist: "blacklisted" pays as others do`,
      {
        hints: ["Try what becomes of a blacklisted payer without a fork."],
      },
    );
  }
  if (spec.payTo !== undefined) requireAccount(spec.payTo);
  const now = await readHeadTime(createLocalRpc(running.rpcUrl), network);
  const payment = await signOffer(readPayer(payer), offer, now, { authorization, permit, ...instead });
  const extensions =
    approval === false ? undefined : await approve(payer, approval, payment, running, offer.asset);
  return { ...bodiesOf(offer, payment, { amount: offer.amount, extensions }), payment };
}

/** Creates the extension with the approval that is attached to a payment. */
async function approve(
  payer: Payer,
  approval: true | "transaction",
  payment: SignedPayment,
  { rpcUrl, chainId }: RunningNetwork,
  asset: Asset,
): Promise<object | undefined> {
  const { waysToPay } = await import("../../methods/on-chain/ways-to-pay.ts");
  return waysToPay.settlingOf(payment.method).bringApproval?.(approval, payment, {
    ask: askNode(rpcUrl),
    chainId,
    asset,
    signer: typeof payer === "string" ? keySignerOf(payer) : payer,
    keySigner: () => keySignerOf(payer),
  });
}

/** @throws {KitError} if payers approve nothing for this method */
function requireApproved({ scheme, method }: Pick<Offer, "scheme" | "method">): void {
  if (methodsOf(scheme, method).some(({ spender }) => spender !== undefined)) return;
  const others = methods.filter(({ spender }) => spender !== undefined);
  throw new KitError(`Payments by ${method} need no approval`, {
    hints: others.slice(-1).map(({ transfer }) => `Ask for another method: { method: "${transfer}" }.`),
  });
}

/**
 * Pays once on a running harness, as an x402 server would: verify, then settle, over HTTP.
 *
 * @param onAnswer called with each answer as it arrives
 * @throws {KitError} if one of the requests gets no answer, or one that is not JSON
 */
export async function pay(
  harness: HarnessDescription,
  spec: PaymentSpec,
  onAnswer: (operation: Operation, answer: JsonResponse) => void = () => {},
  instead?: Partial<PayerTerms>,
): Promise<PaymentReport> {
  const { request, settleRequest } = await signPayment(harness, spec, instead);
  const from = performance.now();
  const verify = await postPayment(harness, "verify", request);
  onAnswer("verify", verify);
  const settle = await postPayment(harness, "settle", settleRequest);
  onAnswer("settle", settle);
  return { verify, settle, tookMs: performance.now() - from };
}

/** Longer than any service waits for a settlement before it answers. */
const settledWithinMs = settleWaitBoundsMs.most + answersWithinMs;

/** Posts a payment to the service with the organization's API key. */
export function postPayment(
  { facilitator, organization }: Access,
  operation: Operation,
  body: Record<string, unknown>,
  headers: Record<string, string> = {},
): Promise<JsonResponse> {
  return requestJson(`${facilitator.url}/${operation}`, {
    method: "POST",
    ...(operation === "settle" && { timeoutMs: settledWithinMs }),
    headers: { authorization: organization.apiKey, ...headers },
    body,
  });
}

/**
 * Returns the signer for a payer.
 *
 * @throws {KitError} if it is neither a test payer, nor a private key, nor a signer
 */
export function readPayer(payer: Payer): PayerSigner | KeySigner {
  if (typeof payer === "string") return signerNamed(payer);
  if (!aText.fits(payer.address) || !aFunction.fits(payer.signTypedData)) throw noPayer();
  return payer;
}

/**
 * Returns a signer that uses the payer's private key directly; for a contract wallet, its owner's.
 *
 * @throws {KitError} if the payer is not given by name or key
 */
function keySignerOf(payer: Payer): KeySigner {
  if (typeof payer === "string") {
    return isTestPayer(payer) ? createPayerSigner(testPayers[payer].privateKey) : signerNamed(payer);
  }
  throw new KitError("An approval that is a transaction is signed with a private key", {
    hints: ["Give the payer as a test payer's name, or as a private key."],
  });
}

/** A sample payment that was settled. */
export type SamplePayment = { network: NetworkName; transaction: string; tookMs: number };

/**
 * Pays once on every running network, concurrently.
 *
 * @throws KitError if one is not settled, which means that something is broken.
 */
export function payOnEveryNetwork(harness: HarnessDescription): Promise<SamplePayment[]> {
  const running = networksOf(harness);
  return Promise.all(
    running.map(async (network) => {
      const { verify, settle, tookMs } = await pay(harness, { network });
      const verdict = verifyAnswerSchema.safeParse(verify.body);
      const outcome = settleAnswerSchema.safeParse(settle.body);
      if (verdict.data?.isValid !== true || outcome.data?.success !== true) {
        throw new KitError(`The sample payment on ${network} did not go through`, {
          hints: [`verify: ${JSON.stringify(verify.body)}`, `settle: ${JSON.stringify(settle.body)}`],
        });
      }
      return { network, transaction: outcome.data.transaction, tookMs };
    }),
  );
}
