import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { readHeadTime } from "../../chain/rpc/head-time.ts";
import { createLocalRpc } from "../../chain/rpc/local-rpc.ts";
import { bytes32, uint256String } from "../../protocol/primitives.ts";
import { controlRefusal } from "../../service/http/local-server/control-refusal.ts";
import { KitError } from "../../util/errors.ts";
import type { JsonResponse } from "../../util/http-client.ts";
import { asText } from "../../util/show-value.ts";
import { describeFaults } from "../faults/describe-faults.ts";
import { describeChains } from "./chain-states.ts";
import { controlOf, runningChain } from "./control-client.ts";
import type { ControlledHarness } from "./controlled-harness.ts";
import type { HarnessDescription } from "./description.ts";
import type { PaymentSpec } from "./pay.ts";
import { payRequest, readPayment } from "./pay-request.ts";
import { requireAccount } from "./require-account.ts";

/** What the routes take. Amounts are in the asset's smallest unit. */
const fundRequest = z.object({ network: z.string(), to: z.string(), amount: uint256String });
const advanceTimeRequest = z.object({ network: z.string(), seconds: z.number() });
const mineRequest = z.object({ network: z.string(), blocks: z.number() });
const journalRequest = z.object({ id: bytes32 });
const idRequest = z.object({ id: z.string() });

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
    if (!refused) request.log.error({ err: error }, "the harness could not do what it was asked to");
    return reply.code(refused ? 400 : 500).send({ error: message, because: causesOf(error), hints });
  });

  const control = controlOf(harness);
  const { faults, journal } = control;
  app.get("/harness", describe);

  app.get("/harness/chains", () =>
    describeChains(Object.values(harness.chains), describe().organization.recipient),
  );

  app.post("/harness/fund", async (request) => {
    const { network, to, amount } = fundRequest.parse(request.body);
    const { asset } = runningChain(harness, network);
    await control.fund(network, requireAccount(to), amount);
    return { network, to, amount: amount.toString(), asset: asset.address };
  });

  app.post("/harness/pay", async (request) => {
    const asked = payRequest.parse(request.body);
    const { rpcUrl } = runningChain(harness, asked.network);
    const payment = await readPayment(asked, () => readHeadTime(createLocalRpc(rpcUrl), asked.network));
    const { verify, settle } = await pay(payment);
    return { verify: verify.body, settle: settle.body };
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
  app.post("/harness/reset", () => control.reset().then(done));
  app.post("/harness/snapshot", async () => ({ id: await control.snapshot() }));
  app.post("/harness/restore", ({ body }) => control.restore(idRequest.parse(body).id).then(done));

  app.get("/harness/faults/kinds", describeFaults);
  app.post("/harness/faults/add", ({ body }) => faults.add(body));
  app.post("/harness/faults/list", async () => ({ faults: await faults.list() }));
  app.post("/harness/faults/remove", async ({ body }) => ({
    removed: await faults.remove(idRequest.parse(body).id),
  }));
  app.post("/harness/faults/clear", () => faults.clear().then(done));

  app.post("/harness/payments", async () => ({ payments: await control.payments() }));
  app.post("/harness/journal/payment", async ({ body }) => ({
    payment: (await journal.payment(journalRequest.parse(body).id)) ?? null,
  }));
  app.post("/harness/journal/payments", async () => ({ payments: await journal.payments() }));
  app.post("/harness/journal/other-requests", async () => ({ requests: await journal.otherRequests() }));

  app.post("/harness/fork-failures", () =>
    harness.forkFailures().map(({ count, latest }) => ({
      count,
      ...(latest !== undefined && { latest: { message: latest.message, hints: latest.hints } }),
    })),
  );

  app.post("/harness/authorization-nonce", () => ({ nonce: harness.nextAuthorizationNonce() ?? null }));
}

/** The messages of what led to an error, the nearest first. */
function causesOf(error: unknown): string[] {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error ? [cause.message, ...causesOf(cause)] : [];
}
