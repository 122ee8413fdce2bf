import type { FastifyInstance } from "fastify";
import type { z } from "zod";
import { readHeadTime } from "../../chain/rpc/calls.ts";
import { createLocalRpc } from "../../chain/rpc/local-rpc.ts";
import { balanceOf } from "../../chain/views.ts";
import { type PaymentTimes, timeFields } from "../../methods/payment-times.ts";
import { permit2Address } from "../../methods/permit2/permit.ts";
import { permitTimes } from "../../methods/permit2/permit2-payload.ts";
import type { ChainView } from "../../observe/studio/harness-views.ts";
import { harnessAccounts } from "../../payer/accounts.ts";
import { tokenNamed } from "../../payer/local-chains.ts";
import { jsonAmount, orderSchema } from "../../payer/payment-order.ts";
import { toUnits } from "../../payer/terms.ts";
import { testPayers } from "../../payer/test-payers.ts";
import type { Address } from "../../protocol/hex.ts";
import { controlRefusal } from "../../service/http/local-server.ts";
import { KitError } from "../../util/errors.ts";
import type { JsonResponse } from "../../util/http-client.ts";
import { asText } from "../../util/text.ts";
import { describeFaults } from "../faults/faults.ts";
import { type ControlledHarness, requireAccount } from "../run/running-harness.ts";
import type { HarnessChain } from "../setup/prepare-chain.ts";
import {
  advanceTimeRequest,
  approveRequest,
  emptyRequest,
  fundRequest,
  idRequest,
  journalRequest,
  mineRequest,
  payRequest,
} from "./control-api.ts";
import { controlOf, runningChain } from "./control-client.ts";
import { type HarnessDescription, networksOf } from "./description.ts";
import type { PaymentSpec } from "./pay.ts";

/**
 * The routes by which other processes act on a running harness. They are served beside the service on the same
 * address, and exist nowhere but here.
 */
export function controlRoutes(
  app: FastifyInstance,
  {
    describe,
    pay,
    harness,
  }: {
    describe: () => HarnessDescription;
    /** Verifies and settles a payment over HTTP, as a server would. */
    pay: (payment: PaymentSpec) => Promise<{ verify: JsonResponse; settle: JsonResponse }>;
    harness: ControlledHarness;
  },
): void {
  app.setErrorHandler((error, request, reply) => {
    const refusal = controlRefusal(error);
    if (refusal !== undefined) {
      return reply.code(refusal.status).send({ error: refusal.message, because: [], hints: [] });
    }
    const refused = error instanceof KitError;
    const message = asText(Reflect.get(Object(error), "message"));
    const hints = refused ? error.hints : [];
    if (!refused) request.log.error({ err: error }, "the harness could not do the action");
    return reply.code(refused ? 400 : 500).send({ error: message, because: causesOf(error), hints });
  });

  const control = controlOf(harness);
  const { faults, journal } = control;
  app.get("/harness", describe);

  app.get("/harness/chains", () =>
    describeChains(Object.values(harness.chains), describe().organization.recipient),
  );

  /** The token that a body names, and the amount in its smallest unit. */
  const readTokens = ({
    network,
    amount,
    units,
    asset,
  }: z.infer<typeof fundRequest | typeof approveRequest>) => {
    const token = tokenNamed(runningChain(harness, network), asset);
    return { token, count: toUnits(jsonAmount(amount, units), token) };
  };

  app.post("/harness/fund", async (request) => {
    const asked = fundRequest.parse(request.body);
    const { token, count } = readTokens(asked);
    await control.fund(asked.network, requireAccount(asked.to), count, asked.asset);
    return { ...asked, asset: token.address };
  });

  app.post("/harness/approve", async (request) => {
    const asked = approveRequest.parse(request.body);
    const { token, count } = readTokens(asked);
    await control.approve(asked.network, requireAccount(asked.account), count, asked.asset);
    return { ...asked, spender: permit2Address, asset: token.address };
  });

  app.post("/harness/pay", async (request) => {
    const asked = payRequest.parse(request.body);
    const { rpcUrl } = runningChain(harness, asked.network);
    const payment = await readPayment(asked, () => readHeadTime(createLocalRpc(rpcUrl), asked.network));
    const { verify, settle } = await pay(payment);
    return { verify: verify.body, settle: settle.body };
  });

  app.post("/__payment", async (request) => {
    const { signOrder } = await import("../../payer/sign-order.ts");
    const networks = Object.entries(describe().networks).map(([name, network]) => ({ name, ...network }));
    const readNow = (name: string) => readHeadTime(createLocalRpc(runningChain(harness, name).rpcUrl), name);
    return signOrder(orderSchema.parse(request.body ?? {}), networks, readNow);
  });

  app.post("/harness/advance-time", async (request) => {
    const { network, seconds } = advanceTimeRequest.parse(request.body);
    return { network, now: Number(await control.advanceTime(network, seconds)) };
  });

  app.post("/harness/mine", async (request) => {
    const { network, blocks } = mineRequest.parse(request.body);
    await control.mine(network, blocks);
    return { network, blocks };
  });

  const done = () => ({});
  /** A route without a body: a reset with `{ network }` would otherwise be mistaken for a reset of that network. */
  const postAlone = (path: string, act: () => unknown) =>
    app.post(path, async ({ body }) => {
      emptyRequest.parse(body ?? {});
      return act();
    });
  postAlone("/harness/reset", () => control.reset().then(done));
  postAlone("/harness/state", () => control.session());
  postAlone("/harness/snapshot", async () => ({ id: await control.snapshot() }));
  app.post("/harness/restore", ({ body }) => control.restore(idRequest.parse(body).id).then(done));

  app.get("/harness/faults/kinds", describeFaults);
  app.post("/harness/faults/add", ({ body }) => faults.add(body));
  postAlone("/harness/faults/list", async () => ({ faults: await faults.list() }));
  app.post("/harness/faults/remove", async ({ body }) => ({
    removed: await faults.remove(idRequest.parse(body).id),
  }));
  postAlone("/harness/faults/clear", () => faults.clear().then(done));

  postAlone("/harness/payments", async () => ({ payments: await control.payments() }));
  app.post("/harness/journal/payment", async ({ body }) => ({
    payment: (await journal.payment(journalRequest.parse(body).id)) ?? null,
  }));
  postAlone("/harness/journal/payments", async () => ({ payments: await journal.payments() }));
  postAlone("/harness/journal/other-requests", async () => ({ requests: await journal.otherRequests() }));

  postAlone("/harness/fork-failures", () =>
    harness.forkFailures().map(({ count, latest }) => ({
      count,
      ...(latest !== undefined && { latest: { message: latest.message, hints: latest.hints } }),
    })),
  );

  postAlone("/harness/authorization-nonce", () => ({ nonce: harness.nextAuthorizationNonce() ?? null }));
}

/** The messages of what led to an error, the nearest first. */
function causesOf(error: unknown): string[] {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error ? [cause.message, ...causesOf(cause)] : [];
}

/** Reads block, time and balances of local chains, those of the recipient among them. */
export function describeChains(chains: readonly HarnessChain[], recipient: Address): Promise<ChainView[]> {
  return Promise.all(chains.map((chain) => describeChain(chain, recipient)));
}

async function describeChain(
  { network, rpcUrl, asset }: HarnessChain,
  recipient: Address,
): Promise<ChainView> {
  const rpc = createLocalRpc(rpcUrl);
  const accounts = {
    ...Object.fromEntries(Object.entries(testPayers).map(([name, { address }]) => [name, address])),
    recipient,
  };
  const quantity = async (...call: Parameters<typeof rpc.request>) =>
    BigInt(String(await rpc.request(...call)));
  const [block, gasMoney, ...balances] = await Promise.all([
    rpc.request("eth_getBlockByNumber", "latest", false),
    quantity("eth_getBalance", harnessAccounts.operator.address, "latest"),
    ...Object.entries(accounts).map(async ([name, account]): Promise<[string, string]> => {
      const { target: to, data } = balanceOf(asset.address, account);
      return [name, (await quantity("eth_call", { to, data }, "latest")).toString()];
    }),
  ]);
  const read = (member: string) => Number(BigInt(String(Reflect.get(Object(block), member))));
  return {
    network: network.name,
    blockNumber: read("number"),
    time: read("timestamp"),
    balances: Object.fromEntries(balances),
    operatorGasMoney: gasMoney.toString(),
  };
}

/** `POST /close`: the x402 project's own test suite ends a facilitator with it. Calls `onClose` once it is answered. */
export function closeRoute(app: FastifyInstance, { onClose }: { onClose(): void }): void {
  app.post("/close", (_request, reply) => {
    reply.raw.once("close", onClose);
    return reply.header("connection", "close").send({ message: "Closing" });
  });
}

/** In seconds: a page may be open for long. */
const aDay = 86_400;

/** A key and a payment that work as they stand, for the page about the API; without a payment where none can be signed. */
export async function apiExampleOf(
  harness: HarnessDescription,
): Promise<{ apiKey: string; payment?: object }> {
  const { apiKey } = harness.organization;
  const [network] = networksOf(harness);
  if (network === undefined) return { apiKey };
  const { signPayment } = await import("./pay.ts");
  // A node that does not answer is no reason to show no API.
  const signed = await signPayment(harness, { network, validForSeconds: aDay }).catch(() => undefined);
  return { apiKey, ...(signed !== undefined && { payment: signed.request }) };
}

/**
 * The payment that is asked for, with its times in unix seconds.
 *
 * @param readNow the chain's time, which is only read for what is said from now
 * @throws {KitError} for a time before 1970
 */
export async function readPayment(
  asked: z.infer<typeof payRequest>,
  readNow: () => Promise<bigint>,
): Promise<PaymentSpec> {
  async function read(name: string, text: string): Promise<bigint> {
    const seconds = text.startsWith("now")
      ? (await readNow()) + BigInt(text.slice(3).replace("+", ""))
      : BigInt(text);
    if (seconds < 0n) throw new KitError(`${name}: ${text} is before 1970, where unix time begins`);
    return seconds;
  }
  const authorization: Partial<PaymentTimes> = {};
  for (const { name } of timeFields) {
    const text = asked[name];
    if (text !== undefined) authorization[name] = await read(name, text);
  }
  const { network, payer, asset, payTo, method, units, approval, x402Version, validForSeconds } = asked;
  const isByPermit2 = method === "permit2" || asked.max !== undefined || asset !== undefined;
  return {
    network,
    payer,
    amount: jsonAmount(asked.amount, units),
    max: jsonAmount(asked.max, units),
    asset,
    payTo,
    scheme: asked.max === undefined ? "exact" : "upto",
    method,
    approval,
    x402Version,
    validForSeconds,
    ...(isByPermit2 ? { permit: permitTimes(authorization) } : { authorization }),
  };
}
