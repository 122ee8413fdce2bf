import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { orderRoute, orderSchema } from "../../payer/payment-order.ts";
import { controlRefusal, describeRoutes, type LocalRoute } from "../../service/http/local-server.ts";
import { KitError } from "../../util/errors.ts";
import { asText } from "../../util/text.ts";
import type { ControlledHarness, News } from "../run/running-harness.ts";
import { type AnyAction, actions, noBody, runningChain } from "./actions.ts";
import { type HarnessDescription, networksOf } from "./description.ts";

/**
 * Adds the routes with which other processes control a running harness. They are served on the service's address. Only the
 * harness has them.
 *
 * @param onNews called after an action with news was answered successfully
 */
export function controlRoutes(
  app: FastifyInstance,
  harness: ControlledHarness,
  onNews: ((news: News) => void) | undefined,
): void {
  app.setErrorHandler((error, request, reply) => {
    const refusal = controlRefusal(error);
    if (refusal !== undefined) {
      return reply
        .code(refusal.status)
        .send({ error: refusal.message, code: "configuration", because: [], hints: [] });
    }
    const refused = error instanceof KitError;
    const message = asText(Reflect.get(Object(error), "message"));
    const { code, hints } = refused ? error : ({ code: "unforeseen", hints: [] } as const);
    if (!refused) request.log.error({ err: error }, "the harness could not do the action");
    return reply.code(refused ? 400 : 500).send({ error: message, code, because: causesOf(error), hints });
  });

  for (const { route, body, run, news } of Object.values<AnyAction>(actions)) {
    const [method = "", url = ""] = route.split(" ");
    app.route({
      method,
      url,
      handler: async (request) => run(harness, body.parse(request.body ?? {})),
      onResponse: async (request, { statusCode }) => {
        if (statusCode === 200 && news !== undefined) onNews?.(news(body.parse(request.body ?? {})));
      },
    });
  }

  app.post("/__payment", async ({ body }) => {
    const { signOrder } = await import("../../payer/sign-order.ts");
    const networks = Object.entries(harness.description.networks).map(([name, one]) => ({ name, ...one }));
    return signOrder(orderSchema.parse(body ?? {}), networks, (name) => runningChain(harness, name).now());
  });
}

/** The routes of {@link controlRoutes} in an OpenAPI document. */
export function describeControlApi(): Record<string, object> {
  const routes: Record<string, LocalRoute> = { "POST /__payment": orderRoute };
  for (const [id, { route, docs, body, answer }] of Object.entries<AnyAction>(actions)) {
    if (docs === undefined) continue;
    const answerSchema = z.toJSONSchema(answer, { io: "input", unrepresentable: "any" });
    routes[route] = { id, ...docs, answerSchema, ...(body !== noBody && { body }) };
  }
  return describeRoutes(routes);
}

/** Returns the messages of an error's causes, nearest first. */
function causesOf(error: unknown): string[] {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error ? [cause.message, ...causesOf(cause)] : [];
}

/** Adds `POST /close`, with which the x402 project's test suite ends a facilitator. Calls `onClose` after answering. */
export function closeRoute(app: FastifyInstance, { onClose }: { onClose(): void }): void {
  app.post("/close", (_request, reply) => {
    reply.raw.once("close", onClose);
    return reply.header("connection", "close").send({ message: "Closing" });
  });
}

/** In seconds; long, because the page may stay open for hours. */
const aDay = 86_400;

/** Returns a working API key and payment for the API page; without the payment if none can be signed. */
export async function apiExampleOf(
  harness: HarnessDescription,
): Promise<{ apiKey: string; payment?: object }> {
  const { apiKey } = harness.organization;
  const [network] = networksOf(harness);
  if (network === undefined) return { apiKey };
  const { signPayment } = await import("./pay.ts");
  // Show the API page even if the node does not answer.
  const signed = await signPayment(harness, { network, validForSeconds: aDay }).catch(() => undefined);
  return { apiKey, ...(signed !== undefined && { payment: signed.request }) };
}
