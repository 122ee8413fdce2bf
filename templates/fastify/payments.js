// What @x402/express is for Express: `@x402/core` as hooks of Fastify, for routes that answer with text or JSON.
import { withPrivateCacheControl, x402HTTPResourceServer } from "@x402/core/server";

/**
 * Asks for a payment before the handler of a route runs, and settles it before the answer is sent. Call it before the
 * routes are added. Each key of `routes` is a method and the URL of a Fastify route: `GET /report/:id`. The app does not
 * start if there is no such route.
 */
export async function requirePayments(app, routes, server) {
  const payments = new x402HTTPResourceServer(server, routes);
  await payments.initialize();
  /** The verified payment of a request, until it is settled. */
  const verifiedOf = new WeakMap();

  const added = new Set();
  app.addHook("onRoute", ({ method, url }) => {
    for (const one of [method].flat()) added.add(`${one} ${url}`);
  });
  app.addHook("onReady", async () => {
    const missing = Object.keys(routes).filter((route) => !added.has(route));
    if (missing.length > 0) throw new Error(`Priced, but not a route of this app: ${missing.join(", ")}`);
  });

  // The route that Fastify chose decides: `request.url` is the client's text, such as `http://any/report`.
  const isPriced = ({ method, routeOptions }) => Object.hasOwn(routes, `${method} ${routeOptions.url}`);
  // Fastify runs the handler of GET for HEAD as well.
  const isHeadOfPriced = ({ method, routeOptions }) =>
    method === "HEAD" && Object.hasOwn(routes, `GET ${routeOptions.url}`);

  app.addHook("preHandler", async (request, reply) => {
    if (!isPriced(request)) {
      if (isHeadOfPriced(request)) return reply.code(405).header("allow", "GET").send();
      return;
    }
    const context = contextOf(request);
    const result = await payments.processHTTPRequest(context);
    if (result.type === "payment-verified") {
      verifiedOf.set(request, { context, ...result });
      return;
    }
    if (result.type !== "payment-error")
      throw new Error(`No price was found for ${request.routeOptions.url}`);
    const { status, headers, body = {}, isHtml } = result.response;
    return reply
      .code(status)
      .headers(headers)
      .type(isHtml ? "text/html" : "application/json")
      .send(isHtml ? body : JSON.stringify(body));
  });

  app.addHook("onSend", async (request, reply, body) => {
    const verified = verifiedOf.get(request);
    if (verified === undefined) {
      if (reply.statusCode >= 400 || !(isPriced(request) || isHeadOfPriced(request))) return body;
      // Nothing judged a payment, so nothing is sent.
      reply.code(500).type("application/json");
      return JSON.stringify({ error: "payment_not_judged" });
    }
    verifiedOf.delete(request);
    if (reply.statusCode >= 400) {
      const responseStatus = reply.statusCode;
      await verified.cancellationDispatcher.cancel({ reason: "handler_failed", responseStatus });
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
      const cacheControl = withPrivateCacheControl(reply.getHeader("cache-control")?.toString() ?? null);
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
  const paymentHeader = header("payment-signature") ?? header("x-payment");
  const { pathname, search } = new URL(request.url, "http://shop");
  const { url: path = pathname } = request.routeOptions;
  return {
    path,
    decodedPath: path,
    method: request.method,
    ...(paymentHeader !== undefined && { paymentHeader }),
    adapter: {
      getHeader: header,
      getMethod: () => request.method,
      getPath: () => pathname,
      getUrl: () => `${request.protocol}://${request.host}${pathname}${search}`,
      getAcceptHeader: () => header("accept") ?? "",
      getUserAgent: () => header("user-agent") ?? "",
      getQueryParams: () => request.query,
      getQueryParam: (name) => request.query[name],
      getBody: () => request.body,
    },
  };
}
