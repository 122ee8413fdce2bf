import { askNode, readHeadTime } from "../../chain/rpc/calls.ts";
import { createLocalRpc } from "../../chain/rpc/local-rpc.ts";
import type { Authorization } from "../../methods/exact-eip3009/authorization.ts";
import { askNextApproval, askNextTransaction } from "../../methods/on-chain/payer-state.ts";
import { forTimes, timesFrom } from "../../methods/payment-times.ts";
import { approvalExtension } from "../../methods/permit2/approval.ts";
import { transactionExtension } from "../../methods/permit2/approval-transaction.ts";
import type { Permit } from "../../methods/permit2/permit.ts";
import { signApprovalTransaction } from "../../methods/permit2/sign-approval-transaction.ts";
import { type PayerSigner, permitMembers, signApproval } from "../../methods/permit2/sign-permit.ts";
import { signTerms, transferMethodOf } from "../../methods/sign-terms.ts";
import { type LocalTokenName, localTokenNames, tokenNamed } from "../../payer/local-chains.ts";
import { createPayerSigner, isTestPayer, type KeySigner, noPayer, signerNamed } from "../../payer/sign-as.ts";
import { bodiesOf, type PaymentBodies } from "../../payer/sign-order.ts";
import { type TestPayerName, testPayers } from "../../payer/test-payers.ts";
import { settleAnswerSchema, verifyAnswerSchema } from "../../protocol/answers.ts";
import type { Address, Hex } from "../../protocol/hex.ts";
import {
  type NetworkName,
  type TransferMethod,
  transferMethods,
  usualMethod,
} from "../../protocol/networks.ts";
import type { Operation } from "../../protocol/problems.ts";
import type { X402Version } from "../../protocol/requests.ts";
import type { SignedPayment } from "../../protocol/signed-payment.ts";
import { KitError } from "../../util/errors.ts";
import {
  aBoolean,
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
import { requireAccount } from "../run/running-harness.ts";
import { type HarnessDescription, networksOf, type RunningNetwork, requireRunning } from "./description.ts";

/** Who pays: a test payer by its name, a private key, or whatever signs typed data, such as a viem account. */
export type Payer = TestPayerName | Hex | PayerSigner;

/** The payment to make, and its payer. */
export type PaymentSpec<N extends NetworkName = NetworkName> = {
  network: N;
  /** The test payer `funded` by default. */
  payer?: Payer | undefined;
  /** The token, by its name in `networks.NAME.tokens`, such as “plain”; USDC by default. Others are paid by Permit2. */
  asset?: LocalTokenName | undefined;
  /**
   * In the asset's smallest unit; 10,000 (0.01 USDC) by default. Of scheme “upto” what settle takes; all of `max` by default.
   */
  amount?: bigint | undefined;
  /** “exact” by default. */
  scheme?: "exact" | "upto" | undefined;
  /** How the tokens move: by EIP-3009 unless said otherwise, and with scheme “upto” by Permit2. */
  method?: TransferMethod | undefined;
  /** Of scheme “upto”: the most that settle may take; 10,000 by default. */
  max?: bigint | undefined;
  /**
   * Where it goes, in the requirements and in what is signed: to the facilitator contract, or, where `payTo` of the harness
   * allows that, straight to the organization's recipient by default.
   */
  payTo?: Address | undefined;
  /** 1 by default; 2 by Permit2, which version 1 does not have. */
  x402Version?: X402Version | undefined;
  /** Seconds from the chain's time until the authorization expires; 600 by default. */
  validForSeconds?: number | undefined;
  /** The URL that is paid for. */
  resource?: string | undefined;
  /** Members of the authorization that are to be signed as they stand here, right or wrong. */
  authorization?: Partial<Omit<Authorization, "from">> | undefined;
  /** The same of a permit. */
  permit?: Partial<Omit<Permit, "from">> | undefined;
  /**
   * By Permit2: whether the payer sends an approval along (EIP-2612, extension `eip2612GasSponsoring`), which is submitted with
   * the payment where Permit2 may not take enough yet; or as a transaction of the payer's own (`erc20ApprovalGasSponsoring`),
   * which is sent before it. None by default.
   */
  approval?: boolean | "transaction" | undefined;
};

/** The kind of value that each member of a payment takes. */
export const paymentSpec: Readonly<Record<keyof PaymentSpec, Wanted>> = {
  network: needed(aText),
  payer: aTextOrObject,
  asset: oneOf(localTokenNames),
  amount: anything,
  scheme: oneOf(["exact", "upto"]),
  method: oneOf(transferMethods),
  max: anything,
  payTo: aText,
  x402Version: oneOf([1, 2]),
  // A second from the first day of unix time, to one that no chain will see.
  validForSeconds: wholeNumber(-1_000_000_000, 1_000_000_000_000),
  resource: aText,
  authorization: anObject,
  permit: anObject,
  approval: {
    what: 'true, false or "transaction"',
    fits: (value) => aBoolean.fits(value) || value === "transaction",
  },
};

const signedMembers: Readonly<Record<keyof Omit<Authorization, "from">, Wanted>> = {
  to: aText,
  value: aUint256,
  ...forTimes(() => aUint256),
  nonce: aText,
};

export type SignedBodies = PaymentBodies & { payment: SignedPayment };

/** The service's answers to one payment, and their time together. */
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
): Promise<SignedBodies> {
  requireGiven(spec, paymentSpec);
  if (spec.authorization !== undefined) requireGiven(spec.authorization, signedMembers, "authorization");
  if (spec.permit !== undefined) requireGiven(spec.permit, permitMembers, "permit");
  const { network, payer = "funded", scheme = "exact", validForSeconds = 600 } = spec;
  const running = requireRunning(harness, network);
  const asset = tokenNamed(running, spec.asset);
  const method = transferMethodOf(scheme, spec.method ?? usualMethod(asset));
  const { x402Version = method === "permit2" ? 2 : 1 } = spec;
  if (spec.max !== undefined && scheme !== "upto") {
    throw new KitError("Only scheme upto has a maximum", { hints: ['Ask for it: { scheme: "upto" }.'] });
  }
  const { approval = false } = spec;
  if (approval !== false && method !== "permit2") {
    throw new KitError("Only payments by Permit2 need an approval", {
      hints: ['Ask for it: { method: "permit2" }.'],
    });
  }
  const max = scheme === "upto" ? (spec.max ?? usualAmount) : (spec.amount ?? usualAmount);
  const amount = spec.amount ?? max;
  for (const one of [amount, max]) {
    if (aUint256.fits(one)) continue;
    throw new KitError(
      `An amount is a bigint below 2^256 in the asset's smallest unit, such as 10_000n, not ${one}`,
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
  const { chainId, rpcUrl } = running;
  const payTo = spec.payTo === undefined ? running.payTo : requireAccount(spec.payTo);
  const now = await readHeadTime(createLocalRpc(rpcUrl), network);
  const payment = await signTerms(readPayer(payer), {
    method,
    asset,
    chainId,
    to: payTo,
    value: max,
    ...timesFrom(now, { until: validForSeconds }),
    ...(nonce !== undefined && { nonce }),
    ...(scheme === "upto" && { facilitator: running.facilitatorContract }),
    authorization: spec.authorization,
    permit: spec.permit,
  });
  const ask = askNode(rpcUrl);
  const extensions =
    approval === "transaction"
      ? {
          [transactionExtension]: {
            info: await signApprovalTransaction(keySignerOf(payer), {
              asset: asset.address,
              chainId,
              ...(await askNextTransaction(ask, payment.payer)),
            }),
          },
        }
      : approval
        ? {
            [approvalExtension]: {
              info: await signApproval(typeof payer === "string" ? keySignerOf(payer) : payer, {
                asset,
                chainId,
                from: payment.payer,
                amount: payment.limit,
                deadline: payment.window.last,
                nonce: await askNextApproval(ask, payment),
              }),
            },
          }
        : undefined;
  const { resource = "https://merchant.example/resource" } = spec;
  const terms = {
    x402Version,
    network: { ...running, name: network },
    asset,
    payTo,
    max,
    amount,
    resource,
    scheme,
  };
  return { ...bodiesOf(payment, terms, extensions), payment };
}

/** 0.01 USDC. */
const usualAmount = 10_000n;

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
  const { request, settleRequest } = await signPayment(harness, spec);
  const from = performance.now();
  const verify = await postPayment(harness, "verify", request);
  onAnswer("verify", verify);
  const settle = await postPayment(harness, "settle", settleRequest);
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

/**
 * What signs for a payer.
 *
 * @throws {KitError} when it is neither a test payer nor what signs
 */
export function readPayer(payer: Payer): PayerSigner | KeySigner {
  if (typeof payer === "string") return signerNamed(payer);
  if (!aText.fits(payer.address) || !aFunction.fits(payer.signTypedData)) throw noPayer();
  return payer;
}

/** What signs with a payer's key itself, which of a wallet is its owner's. */
function keySignerOf(payer: Payer): KeySigner {
  if (typeof payer === "string") {
    return isTestPayer(payer) ? createPayerSigner(testPayers[payer].privateKey) : signerNamed(payer);
  }
  throw new KitError("An approval that is a transaction is signed with a private key", {
    hints: ["Give the payer as a test payer's name, or as a private key."],
  });
}

/** A hundredth of a token. */
function hundredthOf({ decimals }: RunningNetwork["asset"]): bigint {
  return 10n ** BigInt(Math.max(decimals - 2, 0));
}

/** One sample payment that went through. */
export type SamplePayment = { network: NetworkName; transaction: string; tookMs: number };

/**
 * Pays once on every running network, at the same time.
 *
 * @throws KitError when one does not settle: then something is broken.
 */
export function payOnEveryNetwork(harness: HarnessDescription): Promise<SamplePayment[]> {
  const running = networksOf(harness);
  return Promise.all(
    running.map(async (network) => {
      const { verify, settle, tookMs } = await pay(harness, {
        network,
        payer: "funded",
        amount: hundredthOf(requireRunning(harness, network).asset),
        x402Version: 1,
        validForSeconds: 600,
      });
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
