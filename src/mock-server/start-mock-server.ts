import { type FixtureEngine, fixtureOptions } from "../fixtures/engine/engine.ts";
import { explainListenError } from "../local-server/require-free.ts";
import type { CorsOrigins } from "../protocol/cors.ts";
import { createPaymentStore } from "../studio/payment-store.ts";
import { aText, requireGiven, texts, type Wanted, wholeNumber } from "../util/given.ts";
import { describeMock, type MockDescription } from "./describe-mock.ts";
import { createMockApp } from "./mock-app.ts";
import { createMockEngine, type MockEngineOptions } from "./mock-engine.ts";
import { createSessions, type SessionOptions, sessionPath } from "./sessions.ts";

export type MockServerOptions = MockEngineOptions & {
  /** The address to listen on; 127.0.0.1 by default. */
  host?: string;
  /** Names besides `localhost` that the control routes may be called by, such as that of a container. */
  allowHosts?: readonly string[] | undefined;
  /** 0, the default, for any free one. */
  port?: number;
  /** The origins of web pages that may call it; none by default, as in the service. */
  corsOrigins?: CorsOrigins | undefined;
};

const mockServerOptions: Readonly<Record<keyof MockServerOptions, Wanted>> = {
  ...fixtureOptions,
  scenarios: texts,
  host: aText,
  allowHosts: texts,
  port: { ...wholeNumber(0, 65_535), example: "4402" },
  corsOrigins: { what: "* or a list of origins", fits: (value) => value === "*" || texts.fits(value) },
};

/** A facilitator of its own within a mock server, which shares nothing with others but the address. */
export type MockSession = FixtureEngine &
  AsyncDisposable & {
    /** What clients are given: `http://127.0.0.1:4402/v1`. */
    readonly url: string;
    /** What tests in other languages need to know of it. */
    readonly description: MockDescription;
    /** Ends it; answers that are still to come are not given. */
    close(): Promise<void>;
  };

/** A mock facilitator that listens, and control of how its requests end. */
export type MockServer = MockSession & {
  /** Makes a facilitator of its own below the same address, for one test among many that run at the same time. */
  createSession(options?: SessionOptions): MockSession;
};

/**
 * Starts a facilitator without chains as an HTTP server: the fixtures, for clients in any language. What `createFixtures`
 * cannot do to a client of msw is done for real here: connections are reset, and answers break off.
 *
 * @throws ConfigurationError when there is no such option, or one is of the wrong kind
 * @throws KitError when it cannot listen there
 * @throws RangeError that names the nearest scenarios when there is none of a name
 *
 * @example
 * await using mock = await startMockServer();
 * mock.scenario("settle.connection.answer_lost");
 * await fetch(`${mock.url}/settle`, { method: "POST", … });
 */
export async function startMockServer(options: MockServerOptions = {}): Promise<MockServer> {
  requireGiven(options, mockServerOptions);
  const { host = "127.0.0.1", allowHosts, port = 0, corsOrigins, ...engineOptions } = options;
  const serviceId = crypto.randomUUID();
  const store = createPaymentStore(serviceId);
  const sessions = createSessions((session) => createMockEngine({ ...engineOptions, ...session }));
  const { root } = sessions;
  const resetRoot = root.reset;
  Object.assign(root, {
    reset() {
      resetRoot();
      store.clear();
    },
  });

  let described: MockDescription | undefined;
  const app = await createMockApp(
    sessions,
    { host, allowHosts, corsOrigins },
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
  const describe = (base: string, engine: FixtureEngine) => {
    const description = describeMock(base, engine.environment);
    return { description, url: description.facilitator.url };
  };
  const ofRoot = describe(origin, root);
  described = ofRoot.description;
  const close = () => app.close();
  return Object.assign(root, ofRoot, {
    createSession(session: SessionOptions = {}): MockSession {
      requireGiven(session, { clock: fixtureOptions.clock });
      const { id, engine } = sessions.create(session);
      const end = async () => void sessions.end(id);
      const described = describe(`${origin}${sessionPath(id)}`, engine);
      return Object.assign(engine, described, { close: end, [Symbol.asyncDispose]: end });
    },
    close,
    [Symbol.asyncDispose]: close,
  });
}
