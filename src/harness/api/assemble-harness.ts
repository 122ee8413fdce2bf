// Imported instead of global, so that a test's fake timers do not stop code that waits for its harness.
import { setTimeout as sleep } from "node:timers/promises";
import { createLocalRpc } from "../../chain/rpc/local-rpc.ts";
import { mockUsdcAbi } from "../../contracts/mockUsdc.ts";
import { x402FacilitatorAbi } from "../../contracts/x402Facilitator.ts";
import { type LocalTokenName, tokenNamed } from "../../payer/local-chains.ts";
import { type Amount, anAmount, toUnits } from "../../payer/terms.ts";
import { problemSchema, settleAnswerSchema, verifyAnswerSchema } from "../../protocol/answers.ts";
import { type Address, isBytes32 } from "../../protocol/hex.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import { address } from "../../protocol/primitives.ts";
import { settlementId } from "../../protocol/signed-payment.ts";
import { createSerialQueue, type InTurn } from "../../util/concurrency.ts";
import { KitError } from "../../util/errors.ts";
import {
  aText,
  aTextOrObject,
  jsonObject,
  oneOf,
  requireArgument,
  requireGiven,
  type Wanted,
  wholeNumber,
} from "../../util/given.ts";
import type { JsonResponse } from "../../util/http-client.ts";
import type { HarnessControl } from "../control/control-client.ts";
import { type Access, type HarnessDescription, payToOf, requireRunning } from "../control/description.ts";
import { type PaymentSpec, paymentSpec, postPayment, signPayment } from "../control/pay.ts";
import { createFaultSetters } from "../faults/faults.ts";
import type { PaymentJournal } from "../journal/journal.ts";
import { createJournal } from "../journal/journal-reader.ts";
import { requireAccount } from "../run/running-harness.ts";
import { type ChallengeSpec, createHarnessBuyer, describeShop, isOfShop, signChallenge } from "./buyer.ts";
import type {
  Harness,
  HarnessCaller,
  HarnessNetwork,
  PaymentRequestBody,
  ServiceAnswer,
  SettleOptions,
  SignedRequest,
} from "./harness-api.ts";
import { createViemClient, type HarnessClient } from "./viem-client.ts";
import { createWallet } from "./wallet.ts";

/** The interval between reads of the journal. */
const nextPaymentPollMs = 20;

const settleOptions: Readonly<Record<keyof SettleOptions, Wanted>> = {
  idempotencyKey: {
    what: "a text that an HTTP header can hold: visible ASCII and spaces",
    fits: (value) => typeof value === "string" && /^[\x20-\x7e]*$/.test(value),
  },
};

const aTime: Wanted = {
  what: "a time: whole unix seconds, or a date",
  fits: (value) =>
    value instanceof Date
      ? !Number.isNaN(value.getTime())
      : typeof value === "bigint" || Number.isSafeInteger(value),
};

export type AssembleOptions = {
  description: HarnessDescription;
  control: HarnessControl;
  /** Called once, at the first {@link Harness.close}. */
  close(): Promise<void>;
};

/**
 * Builds the typed harness for tests from the description of a running harness and the control over it.
 *
 * @throws {KitError} from its methods after `close`
 */
export function assembleHarness<N extends NetworkName>(
  names: readonly N[],
  { description, control, close: end }: AssembleOptions,
): Harness<N> {
  let closed: Promise<void> | undefined;
  const requireOpen = () => {
    if (closed !== undefined) {
      throw new KitError("This harness was closed", {
        code: "closed",
        hints: ["It is used after close(), or after the block that declared it with `await using` was left."],
      });
    }
  };

  // With a seed, work on a chain is serialized: concurrent work would run in a different order each time.
  const turns = new Map<NetworkName, InTurn>(
    description.seed === undefined ? [] : names.map((name) => [name, createSerialQueue()]),
  );
  const inTurn = <T>(network: NetworkName, work: () => Promise<T>) => turns.get(network)?.(work) ?? work();
  const assembly: Assembly = { description, control, requireOpen, inTurn };
  const assembled = names.map((name) => assembleNetwork(name, assembly));
  const forgetAllImpersonated = () =>
    Promise.all(assembled.map(({ forgetImpersonated }) => forgetImpersonated()));

  const networks = Object.fromEntries(assembled.map(({ network }) => [network.name, network])) as {
    readonly [K in N]: HarnessNetwork<K>;
  };

  function sign(spec: PaymentSpec<N>): Promise<SignedRequest>;
  function sign(spec: ChallengeSpec): Promise<PaymentRequestBody>;
  async function sign(spec: PaymentSpec<N> | ChallengeSpec): Promise<PaymentRequestBody> {
    requireOpen();
    if (isOfShop(spec)) return signChallenge(description, spec);
    const { nonce } = await control.nextAuthorizationNonce();
    return (await signPayment(description, spec, { nonce: nonce ?? undefined })).request;
  }

  const harness: Omit<Harness<N>, "close" | typeof Symbol.asyncDispose> = {
    facilitator: description.facilitator,
    organization: description.organization,
    shop: description.shop,
    networks,

    sign,
    ...speakFor(description.organization.apiKey, assembly, networks),
    as(idOrApiKey) {
      requireArgument("idOrApiKey", idOrApiKey, aText);
      const apiKey = findApiKey(description, idOrApiKey);
      return { apiKey, ...speakFor(apiKey, assembly, networks) };
    },
    faults: createFaultSetters({
      async add(spec) {
        requireOpen();
        return control.addFault(Object(spec));
      },
      list: async () => (await control.listFaults()).faults,
      remove: async (id) => (await control.removeFault({ id })).removed,
      clear: async () => void (await control.clearFaults()),
    }),
    journal: createJournal(control),
    async payments() {
      requireOpen();
      return (await control.payments()).payments;
    },
    async nextPayment(options = {}) {
      requireOpen();
      requireGiven(options, { timeoutMs: wholeNumber(0, 3_600_000) });
      return awaitPayment(control, options.timeoutMs ?? 10_000);
    },
    buyer(payer, options = {}) {
      requireArgument("payer", payer, aTextOrObject);
      return createHarnessBuyer(description, payer, options);
    },
    wallet(options = {}) {
      requireGiven(options, { payer: aText, network: oneOf(names) });
      const [first = ""] = names;
      return createWallet(description, { ...options, network: options.network ?? first }, requireOpen);
    },
    async snapshot() {
      requireOpen();
      const { id } = await control.snapshot();
      return {
        async restore() {
          requireOpen();
          await forgetAllImpersonated();
          await control.restore({ id });
        },
      };
    },
    async reset() {
      requireOpen();
      await forgetAllImpersonated();
      await control.reset();
    },
  };

  const close = () => {
    // A harness of another process keeps running, but without this client's impersonations. A node may already be gone.
    closed ??= forgetAllImpersonated()
      .catch(() => {})
      .then(end);
    return closed;
  };
  return { ...harness, close, [Symbol.asyncDispose]: close };
}

/** Shared by the parts of a harness. */
type Assembly = {
  description: HarnessDescription;
  control: HarnessControl;
  /** @throws {KitError} after `close` */
  requireOpen(): void;
  /** With a seed, runs the work on a chain sequentially; otherwise immediately. */
  inTurn<T>(network: NetworkName, work: () => Promise<T>): Promise<T>;
};

function speakFor<N extends NetworkName>(
  apiKey: string,
  assembly: Assembly,
  networks: Harness<N>["networks"],
): Omit<HarnessCaller<N>, "apiKey"> {
  const { description, control, requireOpen, inTurn } = assembly;
  const service: Access = { facilitator: description.facilitator, organization: { apiKey } };
  const caller: Omit<HarnessCaller<N>, "apiKey"> = {
    async verify(request) {
      requireOpen();
      requireArgument("request", request, jsonObject);
      const answer = await explained(assembly, () => postPayment(service, "verify", request));
      return readAnswer(answer, verifyAnswerSchema);
    },
    async settle(request, options = {}) {
      requireOpen();
      requireArgument("request", request, jsonObject);
      requireGiven(options, settleOptions);
      const { idempotencyKey } = options;
      const headers = idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey };
      const answer = await explained(assembly, () => postPayment(service, "settle", request, headers));
      return readAnswer(answer, settleAnswerSchema);
    },
    async pay(given) {
      requireOpen();
      requireGiven(given, { ...paymentSpec, ...settleOptions });
      const { idempotencyKey, ...asked } = given;
      const spec = { ...asked, payTo: asked.payTo ?? payToOf(description, asked.network, apiKey) };
      const { nonce } = await control.nextAuthorizationNonce();
      return inTurn(spec.network, async () => {
        const { request, settleRequest, payment } = await signPayment(description, spec, {
          nonce: nonce ?? undefined,
        });
        const verify = await caller.verify(request);
        const settle = await caller.settle(
          settleRequest,
          idempotencyKey === undefined ? {} : { idempotencyKey },
        );
        const { chainId, client } = networks[spec.network];
        return {
          request,
          settleRequest,
          verify,
          settle,
          receipt: await findReceipt(client, settle.body.transaction),
          settlementId: settlementId(chainId, payment.nonceSpace, payment.payer, payment.nonce),
        };
      });
    },
    shopConfig(network, amount, options = {}) {
      requireArgument("amount", amount, anAmount);
      return describeShop(description, { network, amount, apiKey, options });
    },
  };
  return caller;
}

/**
 * Posts a request and returns the answer.
 *
 * @throws {KitError} saying what is missing, if the answer is 503 because a fork could not answer a call
 */
async function explained(
  { description, control }: Assembly,
  post: () => Promise<JsonResponse>,
): Promise<JsonResponse> {
  if (Object.values(description.networks).every(({ fork }) => fork === undefined)) return post();
  const before = await control.forkFailures();
  const answer = await post();
  if (answer.status !== 503) return answer;
  const after = await control.forkFailures();
  const failed = after.find(({ count }, index) => count !== before[index]?.count)?.latest;
  if (failed === undefined) return answer;
  throw new KitError(failed.message, { hints: failed.hints });
}

/** Waits for the first new payment and returns it once its first request has ended. */
async function awaitPayment(control: HarnessControl, timeoutMs: number): Promise<PaymentJournal> {
  const before = new Set((await control.journalPayments()).payments);
  const giveUpAt = performance.now() + timeoutMs;
  for (;;) {
    const id = (await control.journalPayments()).payments.find((one) => !before.has(one));
    const payment = id === undefined ? null : (await control.journalPayment({ id })).payment;
    // It is listed when its first request arrives, but has content only once that request has ended.
    if (payment !== null && payment.requests.length > 0) return payment;
    if (performance.now() > giveUpAt) {
      throw new KitError(`No payment came within ${timeoutMs} ms`, {
        hints: ["Does the shop use the facilitator of this harness? harness.shopConfig() has what it needs."],
      });
    }
    await sleep(nextPaymentPollMs);
  }
}

/**
 * Returns the API key of the organization with an id. An API key (`x4k_…`) is returned as it is.
 *
 * @throws {KitError} if there is no such organization
 */
function findApiKey({ organization, organizations = [] }: HarnessDescription, idOrApiKey: string): string {
  if (idOrApiKey.startsWith("x4k_")) return idOrApiKey;
  const all = [organization, ...organizations];
  const found = all.find(({ id }) => id === idOrApiKey);
  if (found !== undefined) return found.apiKey;
  throw new KitError(`This harness has no organization ${JSON.stringify(idOrApiKey)}`, {
    hints: [`It has ${all.map(({ id }) => id).join(", ")}: name others in the option organizations.`],
  });
}

function assembleNetwork(
  name: NetworkName,
  { description, control, requireOpen, inTurn }: Assembly,
): { network: HarnessNetwork; forgetImpersonated(): Promise<void> } {
  const running = requireRunning(description, name);
  const { chainId, caip2, rpcUrl, facilitatorContract, payTo, asset, tokens = {}, fork } = running;

  const readTokens = (amount: Amount, asset: LocalTokenName | undefined) => {
    requireArgument("amount", amount, anAmount);
    return { network: name, amount: `${toUnits(amount, tokenNamed(running, asset))}`, units: true, asset };
  };

  // A node cannot list the accounts that it impersonates, and a revert does not end impersonation.
  const impersonated = new Set<Address>();
  const client = createViemClient(name, running, ({ method, params }) => {
    requireOpen();
    if (!/^(anvil|hardhat)_impersonateAccount$/.test(method) || !Array.isArray(params)) return;
    const account = address.safeParse(params[0]);
    if (account.success) impersonated.add(account.data);
  });

  const network: HarnessNetwork = {
    name,
    chainId,
    caip2,
    rpcUrl,
    client,
    facilitatorContract: { address: facilitatorContract, abi: x402FacilitatorAbi },
    payTo,
    asset: { ...asset, abi: mockUsdcAbi },
    ...(fork !== undefined && { fork }),
    tokens,
    async fund(account, amount, token) {
      requireOpen();
      const tokens = readTokens(amount, token);
      await inTurn(name, () => control.fund({ to: requireAccount(account), ...tokens }));
    },
    async approvePermit2(account, amount = 2n ** 256n - 1n, token) {
      requireOpen();
      const tokens = readTokens(amount, token);
      await inTurn(name, () => control.approve({ account: requireAccount(account), ...tokens }));
    },
    async balanceOf(account, token) {
      return client.readContract({
        address: tokenNamed(running, token).address,
        abi: mockUsdcAbi,
        functionName: "balanceOf",
        args: [requireAccount(account)],
      });
    },
    async mine(blocks = 1) {
      requireOpen();
      await inTurn(name, () => control.mine({ network: name, blocks }));
    },
    async advanceTime(seconds) {
      requireOpen();
      return BigInt((await inTurn(name, () => control.advanceTime({ network: name, seconds }))).now);
    },
    async advanceTimeTo(time) {
      requireArgument("time", time, aTime);
      const seconds = time instanceof Date ? BigInt(Math.ceil(time.getTime() / 1_000)) : BigInt(time);
      const now = await network.now();
      if (seconds <= now) {
        throw new KitError(`${name} is at ${now} already, and time only goes forward; asked for ${seconds}`);
      }
      return network.advanceTime(Number(seconds - now));
    },
    now: async () => (await client.getBlock()).timestamp,
  };
  return {
    network,
    async forgetImpersonated() {
      const accounts = [...impersonated];
      impersonated.clear();
      // Not through the client: it refuses requests once the harness is closed.
      await createLocalRpc(rpcUrl).batch(
        accounts.map((account) => ["anvil_stopImpersonatingAccount", account]),
      );
    },
  };
}

/** Reads an answer of the service: a verdict for status 200, otherwise problem details. */
function readAnswer<Verdict>(
  { status, headers, body }: JsonResponse,
  schema: { safeParse(body: unknown): { data?: Verdict | undefined } },
): ServiceAnswer<Verdict> {
  const { data } = status === 200 ? schema.safeParse(body) : problemSchema.safeParse(body);
  if (data === undefined) {
    throw new KitError(`The service gave an answer of status ${status} that is none`, {
      hints: [JSON.stringify(body)],
    });
  }
  return { status, headers, body: data };
}

async function findReceipt(client: HarnessClient, transaction: string | undefined) {
  if (!isBytes32(transaction)) return null;
  const { TransactionReceiptNotFoundError } = await import("viem");
  try {
    return await client.getTransactionReceipt({ hash: transaction });
  } catch (error) {
    if (error instanceof TransactionReceiptNotFoundError) return null;
    throw error;
  }
}
