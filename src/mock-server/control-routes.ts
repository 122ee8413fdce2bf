import type { FastifyInstance, FastifyRequest } from "fastify";
import { z } from "zod";
import { longestAdvanceSeconds } from "../config/advance-time.ts";
import { findScenario, type ScenarioRow, scenarios } from "../fixtures/cases/scenarios.ts";
import type { FixtureCall, FixtureEngine } from "../fixtures/engine/engine.ts";
import { controlRefusal } from "../local-server/control-refusal.ts";
import { nearestRoute, shortenPath } from "../protocol/routes.ts";
import { asText } from "../util/show-value.ts";
import { describeMock } from "./describe-mock.ts";
import { mostSessions, type Sessions, sessionPath } from "./sessions.ts";

const longestDelayMs = 600_000;

const scenarioSchema = z.strictObject({
  name: z.string().max(100, "is longer than the name of any scenario"),
  times: z.union([z.int().min(1), z.literal("always")]).default(1),
  delayMs: z.number().min(0).max(longestDelayMs).optional(),
});

const scenariosSchema = z.array(scenarioSchema).min(1);

const timeSchema = z.strictObject({ seconds: z.number().min(0).max(longestAdvanceSeconds) });

const sessionSchema = z.strictObject({ clock: z.iso.datetime().pipe(z.coerce.date()).optional() });

function noSuchSession(id: string): ControlError {
  return new ControlError(404, `There is no session ${JSON.stringify(id.slice(0, 40))}, or it was ended`, [
    "POST /__sessions makes one, and says where it is.",
    `There are at most ${mostSessions}: another one ends the one unused for longest. DELETE those that are done.`,
  ]);
}

const paths = [
  "POST /__scenario",
  "GET /__scenarios",
  "GET /__scenarios/{name}",
  "GET /__calls",
  "POST /__advance-time",
  "GET /__clock",
  "POST /__reset",
  "POST /__sessions",
  "DELETE /__sessions/{id}",
] as const;

/** A request to these routes that cannot be done; the message is for its sender. */
class ControlError extends Error {
  readonly status: number;
  readonly hints: readonly string[];
  constructor(status: number, message: string, hints: readonly string[] = []) {
    super(message);
    this.status = status;
    this.hints = hints;
  }
}

/** The routes by which tests in any language choose the outcomes of requests, and read what was asked. */
export function mockControlRoutes(
  app: FastifyInstance,
  { sessions, engineOf }: { sessions: Sessions; engineOf: (request: FastifyRequest) => FixtureEngine },
): void {
  app.setErrorHandler((error, _request, reply) => {
    const { status, message, hints } = explain(error);
    return reply.code(status).send({ error: message, hints });
  });

  app.post("/__scenario", (request) => {
    const asked = readJson(request.body);
    const named = (one: unknown) => (typeof one === "string" ? { name: one } : one);
    const list = Array.isArray(asked)
      ? scenariosSchema.parse(asked.map(named))
      : [scenarioSchema.parse(named(asked))];
    // All are looked up before the first is set, so that a mistake changes nothing.
    const wanted = list.map((each) => ({ ...each, row: findScenario(each.name) }));
    for (const { row, times, delayMs } of wanted) {
      const control = engineOf(request).scenario(row.name);
      if (times === "always") control.always();
      else control.times(times);
      if (delayMs !== undefined) control.delay(delayMs);
    }
    return { scenarios: wanted.map(({ row, times, delayMs }) => ({ name: row.name, times, delayMs })) };
  });

  app.get("/__scenarios", () => scenarios.map(describeRow));

  app.get<{ Params: { name: string } }>("/__scenarios/:name", async (request) => {
    const row = findScenario(request.params.name);
    return { ...describeRow(row), ...(await row.plan(engineOf(request).environment)) };
  });

  app.get("/__calls", (request) => engineOf(request).calls.map(describeCall));

  app.post("/__advance-time", async (request) => {
    const { seconds } = timeSchema.parse(readJson(request.body));
    engineOf(request).advanceTime(seconds);
    return clockOf(request);
  });

  app.get("/__clock", clockOf);

  async function clockOf(request: FastifyRequest) {
    return { now: Number(await engineOf(request).environment.now()) };
  }

  app.post("/__sessions", (request) => {
    const { clock } = sessionSchema.parse(request.body ? readJson(request.body) : {});
    const { id, engine } = sessions.create(clock === undefined ? {} : { clock });
    const origin = `${request.protocol}://${request.host}`;
    return { id, ...describeMock(`${origin}${sessionPath(id)}`, engine.environment) };
  });

  app.delete<{ Params: { id: string } }>("/__sessions/:id", (request, reply) => {
    if (!sessions.end(request.params.id)) throw noSuchSession(request.params.id);
    return reply.code(204).send();
  });

  app.all<{ Params: { id: string } }>("/__sessions/:id/*", ({ params: { id } }) => {
    throw noSuchSession(id);
  });

  app.post("/__reset", (request, reply) => {
    engineOf(request).reset();
    return reply.code(204).send();
  });

  app.all("/__*", (request) => {
    const path = shortenPath(request.url.split("?")[0] ?? "");
    throw new ControlError(
      404,
      `There is no ${request.method} ${path}${nearestRoute(path, paths)}`,
      paths.map((path) => `There is ${path}`),
    );
  });
}

/** Reads JSON of any content type: curl sends it as a form. */
function readJson(body: unknown): unknown {
  try {
    return JSON.parse(typeof body === "string" ? body : "");
  } catch (cause) {
    const example = { name: "settle.insufficient_funds", times: 2, delayMs: 500 };
    throw new ControlError(400, `The body is not JSON: ${Reflect.get(Object(cause), "message")}`, [
      `For example: ${JSON.stringify(example)}`,
    ]);
  }
}

function explain(error: unknown): { status: number; message: string; hints: readonly string[] } {
  if (error instanceof ControlError) return error;
  const refusal = controlRefusal(error);
  if (refusal !== undefined) return { ...refusal, hints: [] };
  const message = error instanceof Error ? error.message : asText(error);
  // An unknown scenario, with the nearest names.
  if (error instanceof RangeError) return { status: 400, message, hints: ["All of them: GET /__scenarios"] };
  const status: unknown = Reflect.get(Object(error), "statusCode");
  return { status: typeof status === "number" ? status : 500, message, hints: [] };
}

function describeRow({ name, operation, x402Version, means, clientShould, cause }: ScenarioRow) {
  return { name, operation, x402Version, means, clientShould, cause };
}

function describeCall({ operation, scenario, request, payment, answer }: FixtureCall) {
  return {
    operation: operation ?? null,
    scenario: scenario ?? null,
    request,
    payment:
      payment === undefined
        ? null
        : {
            x402Version: payment.x402Version,
            network: payment.network,
            asset: payment.requirements.asset,
            payer: payment.authorization.from,
            to: payment.authorization.to,
            value: payment.authorization.value.toString(),
            authorizationNonce: payment.authorization.nonce,
          },
    answer,
  };
}
