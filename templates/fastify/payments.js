// What @x402/express is for Express: `@x402/core` as hooks of Fastify, for routes that answer with text or JSON.
import { withPrivateCacheControl, x402HTTPResourceServer } from "@x402/core/server";

/** The verified payment of a request, until it is settled. */
const payment = Symbol("payment");

/** Asks for a payment before the handler of a route runs, and settles it before the answer is sent. */
export async function requirePayments(app, routes, server) {
  const payments = new x402HTTPResourceServer(server, routes);
  await payments.initialize();
  app.decorateRequest(payment, null);

  app.addHook("preHandler", async (request, reply) => {
    const context = contextOf(request);
    if (!payments.requiresPayment(context)) return;
    const result = await payments.processHTTPRequest(context);
    if (result.type === "payment-verified") request[payment] = { context, ...result };
    if (result.type !== "payment-error") return;
    const { status, headers, body = {}, isHtml } = result.response;
    return reply
      .code(status)
      .headers(headers)
      .type(isHtml ? "text/html" : "application/json")
      .send(isHtml ? body : JSON.stringify(body));
  });

  app.addHook("onSend", async (request, reply, body) => {
    const verified = request[payment];
    if (verified === null) return body;
    request[payment] = null;
    if (reply.statusCode >= 400) {
      const reason = { reason: "handler_failed", responseStatus: reply.statusCode };
      await verified.cancellationDispatcher.cancel(reason);
      return body;
    }
    const settled = await payments.processSettlement(
      verified.paymentPayload,
      verified.paymentRequirements,
      verified.declaredExtensions,
      { request: verified.context, responseBody: Buffer.from(body ?? "") },
      undefined,
      verified.beforeHandlerSettlement,
    );
    if (settled.success) {
      const cacheControl = withPrivateCacheControl(reply.getHeader("cache-control") ?? null);
      reply.headers(settled.headers).header("cache-control", cacheControl);
      return body;
    }
    // Not paid: the goods stay here.
    const { status, headers, body: refusal = {}, isHtml } = settled.response;
    reply
      .code(status)
      .headers(headers)
      .type(isHtml ? "text/html" : "application/json");
    return isHtml ? refusal : JSON.stringify(refusal);
  });
}

/** A request as `@x402/core` reads it. */
function contextOf(request) {
  const header = (name) => [request.headers[name.toLowerCase()]].flat()[0];
  const path = request.url.split("?")[0];
  return {
    path,
    decodedPath: decoded(path),
    method: request.method,
    paymentHeader: header("payment-signature") ?? header("x-payment"),
    adapter: {
      getHeader: header,
      getMethod: () => request.method,
      getPath: () => path,
      getUrl: () => `${request.protocol}://${request.host}${request.url}`,
      getAcceptHeader: () => header("accept") ?? "",
      getUserAgent: () => header("user-agent") ?? "",
      getQueryParams: () => request.query,
      getQueryParam: (name) => request.query[name],
      getBody: () => request.body,
    },
  };
}

function decoded(path) {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
