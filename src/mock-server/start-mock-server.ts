import { findScenario, type ScenarioName } from "../fixtures/cases/scenarios.ts";
import { createFixtureEngine, type FixtureEngine, type FixtureOptions } from "../fixtures/engine/engine.ts";
import { explainListenError } from "../local-server/require-free.ts";
import { createPaymentStore } from "../studio/payment-store.ts";
import { describeMock, type MockDescription } from "./describe-mock.ts";
import { createMockApp } from "./mock-app.ts";

export type MockServerOptions = FixtureOptions & {
  /** The address to listen on; 127.0.0.1 by default. */
  host?: string;
  /** Names besides `localhost` that the control routes may be called by, such as that of a container. */
  allowHosts?: readonly string[] | undefined;
  /** 0, the default, for any free one. */
  port?: number;
  /** What requests of their operations come to when nothing else was asked for; also after a reset. */
  scenarios?: readonly ScenarioName[];
};

/** A mock facilitator that listens, and control of how its requests end. */
export type MockServer = FixtureEngine &
  AsyncDisposable & {
    /** What clients are given: `http://127.0.0.1:4402/v1`. */
    readonly url: string;
    /** What tests in other languages need to know of it. */
    readonly description: MockDescription;
    /** Ends it; answers that are still to come are not given. */
    close(): Promise<void>;
  };

/**
 * Starts a facilitator without chains as an HTTP server: the fixtures, for clients in any language. What `createFixtures`
 * cannot do to a client of msw is done for real here: connections are reset, and answers break off.
 *
 * @throws KitError when it cannot listen there
 * @throws RangeError that names the nearest scenarios when there is none of a name
 *
 * @example
 * await using mock = await startMockServer();
 * mock.scenario("settle.connection.answer_lost");
 * await fetch(`${mock.url}/settle`, { method: "POST", … });
 */
export async function startMockServer(options: MockServerOptions = {}): Promise<MockServer> {
  const { host = "127.0.0.1", allowHosts, port = 0, scenarios = [], ...fixtureOptions } = options;
  const engine = createFixtureEngine(fixtureOptions);
  const usual = scenarios.map((name) => findScenario(name).name);
  const orderUsual = () => {
    for (const name of usual) engine.scenario(name).always();
  };
  orderUsual();
  const serviceId = crypto.randomUUID();
  const store = createPaymentStore(serviceId);
  const resetEngine = engine.reset;
  const fixtures = Object.assign(engine, {
    reset() {
      resetEngine();
      store.clear();
      orderUsual();
    },
  });

  let described: MockDescription | undefined;
  const app = await createMockApp(
    fixtures,
    { host, allowHosts },
    { store, serviceId, describe: () => described ?? {} },
  );
  app.addHook("onClose", async () => store.close());
  let origin: string;
  try {
    origin = await app.listen({ host, port });
  } catch (error) {
    await app.close();
    throw explainListenError(error, host, port, "x402-kit mock");
  }
  const description = describeMock(origin, fixtures.environment);
  described = description;
  const { url } = description.facilitator;
  const close = () => app.close();
  return Object.assign(fixtures, { url, description, close, [Symbol.asyncDispose]: close });
}
