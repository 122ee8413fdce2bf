import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  answering,
  type Behaviour,
  refusing,
  type StubNode,
  sendJson,
  startStubNode,
} from "../../../test/support/stub-node.ts";
import { KitError, UndeterminedError } from "../../util/errors.ts";
import { createHttpRpc, type HttpRpcOptions } from "./http-rpc.ts";
import type { RpcCall } from "./rpc.ts";

const call = (name: string): RpcCall => ({ method: "echo", params: [name] });
const echo = answering(({ params }) => params[0]);
const results = (answers: readonly { result?: unknown }[]) => answers.map(({ result }) => result);

let node: StubNode;
beforeEach(async () => {
  node = await startStubNode(echo);
});
afterEach(() => node.stop());

function createRpc(options: Partial<HttpRpcOptions> = {}) {
  return createHttpRpc({
    network: "base",
    chainId: 8453,
    urls: [node.url],
    timeoutMs: 5_000,
    retryDelayMs: 1,
    ...options,
  });
}

async function failureOf(promise: Promise<unknown>): Promise<UndeterminedError> {
  const error = await promise.then(
    () => new Error("it did not fail"),
    (error: unknown) => error,
  );
  if (!(error instanceof UndeterminedError)) throw error;
  return error;
}

describe("one request", () => {
  test("carries all calls that are asked at the same time", async () => {
    const rpc = createRpc();
    const answers = await Promise.all([
      rpc.ask([call("a"), call("b")]),
      rpc.ask([call("c")]),
      rpc.ask([call("d"), call("e")]),
    ]);
    expect(answers.map(results)).toEqual([["a", "b"], ["c"], ["d", "e"]]);
    expect(node.batches).toHaveLength(1);
  });

  test("asks the same call object once for all callers", async () => {
    const rpc = createRpc();
    const shared = call("head");
    const answers = await Promise.all([rpc.ask([shared, call("a")]), rpc.ask([shared, call("b")])]);
    expect(answers.map(results)).toEqual([
      ["head", "a"],
      ["head", "b"],
    ]);
    expect(node.batches.flat()).toHaveLength(3);
  });

  test("holds no more calls than a batch may, and keeps what was asked together in one", async () => {
    const rpc = createRpc({ maxBatch: 5 });
    const asked = [1, 2, 3, 4].map((n) => rpc.ask([call(`${n}a`), call(`${n}b`)]));
    expect((await Promise.all(asked)).map(results)).toEqual([1, 2, 3, 4].map((n) => [`${n}a`, `${n}b`]));
    expect(node.batches.map((batch) => batch.map(({ params }) => params[0]))).toEqual([
      ["1a", "1b", "2a", "2b"],
      ["3a", "3b", "4a", "4b"],
    ]);
  });

  test("is split only for a question larger than a batch", async () => {
    const names = Array.from({ length: 12 }, (_, index) => `${index}`);
    expect(results(await createRpc({ maxBatch: 5 }).ask(names.map(call)))).toEqual(names);
    expect(node.batches.map((batch) => batch.length)).toEqual([5, 5, 2]);
  });

  test("holds no more bytes than a batch may, unless a single question has more", async () => {
    const rpc = createRpc({ maxBatchBytes: 1_000 });
    const long = (letter: string) => rpc.ask([call(letter.repeat(400))]);
    const asked = ["a", "b", "c"].map(long);
    const longer = rpc.ask([call("d".repeat(2_000))]);
    await Promise.all([...asked, longer]);
    expect(node.batches.map((batch) => batch.map(({ params }) => String(params[0])[0]))).toEqual([
      ["a", "b"],
      ["c"],
      ["d"],
    ]);
  });

  test("waits while enough requests are under way, and then carries everything that waited", async () => {
    const release: (() => void)[] = [];
    node.behave(async (calls, response, body) => {
      await new Promise<void>((resolve) => release.push(resolve));
      await echo(calls, response, body);
    });
    const rpc = createRpc({ maxInFlight: 2 });
    const asked: Promise<unknown>[] = [];
    for (const [index, name] of ["a", "b", "c", "d", "e"].entries()) {
      asked.push(rpc.ask([call(name)]));
      await expect.poll(() => node.batches.length, { interval: 10 }).toBe(Math.min(index + 1, 2));
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
    expect(node.batches.map((batch) => batch.length)).toEqual([1, 1]);
    release.shift()?.();
    await expect.poll(() => node.batches.length).toBe(3);
    for (const let_ of release) let_();
    await Promise.all(asked);
    expect(node.batches.map((batch) => batch.length)).toEqual([1, 1, 3]);
  });

  test("while two requests are under way it waits a little for more, and then for none of them", async () => {
    const release: (() => void)[] = [];
    node.behave(async (calls, response, body) => {
      await new Promise<void>((resolve) => release.push(resolve));
      await echo(calls, response, body);
    });
    const rpc = createRpc();
    const asked: Promise<unknown>[] = [];
    for (const name of ["a", "b"]) {
      asked.push(rpc.ask([call(name)]));
      await expect.poll(() => node.batches.length).toBe(asked.length);
    }
    // In turns of the event loop of their own.
    for (const name of ["c", "d", "e"]) {
      asked.push(rpc.ask([call(name)]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await expect.poll(() => node.batches.map((batch) => batch.length)).toEqual([1, 1, 3]);
    for (const let_ of release) let_();
    await Promise.all(asked);
  });

  test("answers are told apart by id, in whatever order they come", async () => {
    node.behave((calls, response) =>
      sendJson(response, calls.map(({ id, params }) => ({ id, result: params[0] })).reverse()),
    );
    expect(results(await createRpc().ask(["a", "b", "c"].map(call)))).toEqual(["a", "b", "c"]);
  });

  test("an error to a single call is an answer", async () => {
    node.behave(refusing({ code: -32601, message: "no such method", data: [1] }));
    expect(await createRpc().ask([call("a")])).toEqual([
      { error: { code: -32601, message: "no such method", data: [1] }, endpoint: "1" },
    ]);
    expect(node.batches).toHaveLength(1);
  });
});

/** How a node may fail to answer, and what the operator is told. Only silence is what the time-out is for. */
type Failure = { behaviour: Behaviour; timeoutMs?: number; told: string; requests: number };

const failures: Record<string, Failure> = {
  "malformed JSON": {
    behaviour: (_, response) => void response.end('[{"id":1'),
    told: "answered with malformed JSON",
    requests: 2,
  },
  "one error for the whole batch": {
    behaviour: (_, response) => sendJson(response, { error: { code: -32600, message: "batch too large" } }),
    told: "refused the batch: JSON-RPC error -32600: batch too large",
    requests: 2,
  },
  "an object": {
    behaviour: (calls, response) => sendJson(response, { id: calls[0]?.id, result: "a" }),
    told: "answered a batch of JSON-RPC calls with neither a list of answers nor an error",
    requests: 2,
  },
  null: {
    behaviour: (_, response) => sendJson(response, null),
    told: "answered a batch of JSON-RPC calls with neither a list of answers nor an error",
    requests: 2,
  },
  "an empty batch": {
    behaviour: (_, response) => sendJson(response, []),
    told: "left a call of the batch unanswered",
    requests: 2,
  },
  "an answer too few": {
    behaviour: (calls, response) =>
      sendJson(
        response,
        calls.slice(1).map(({ id }) => ({ id, result: "b" })),
      ),
    told: "left a call of the batch unanswered",
    requests: 2,
  },
  "an answer without result and error": {
    behaviour: (calls, response) =>
      sendJson(
        response,
        calls.map(({ id }) => ({ id })),
      ),
    told: "left a call of the batch unanswered",
    requests: 2,
  },
  "the same id twice": {
    behaviour: (calls, response) =>
      sendJson(
        response,
        calls.map(() => ({ id: calls[0]?.id, result: "a" })),
      ),
    told: "answered twice with the same id",
    requests: 2,
  },
  "an id of another request": {
    behaviour: (calls, response) =>
      sendJson(
        response,
        calls.map(({ id }) => ({ id: id - 1, result: "a" })),
      ),
    told: "answered with an id that was not asked",
    requests: 2,
  },
  "ids as text": {
    behaviour: (calls, response) =>
      sendJson(
        response,
        calls.map(({ id }) => ({ id: `${id}`, result: "a" })),
      ),
    told: "answered with an id that was not asked",
    requests: 2,
  },
  "entries that are no objects": {
    behaviour: (_, response) => sendJson(response, [null, 1]),
    told: "answered with an id that was not asked",
    requests: 2,
  },
  "429": {
    behaviour: (_, response) => sendJson(response, {}, 429),
    told: "HTTP 429",
    requests: 2,
  },
  "503": {
    behaviour: (_, response) => sendJson(response, {}, 503),
    told: "HTTP 503",
    requests: 2,
  },
  "a redirect": {
    behaviour: (_, response) => void response.writeHead(302, { location: "/elsewhere" }).end(),
    told: "HTTP 302",
    requests: 2,
  },
  "a rate limit on a single call": {
    behaviour: (calls, response) =>
      sendJson(
        response,
        calls.map(({ id }, index) =>
          index === 0 ? { id, result: "a" } : { id, error: { code: -32005, message: "slow down" } },
        ),
      ),
    told: "JSON-RPC error -32005: slow down",
    requests: 2,
  },
  "a reset connection": {
    behaviour: (_, response) => void response.destroy(),
    told: "the connection failed (ECONNRESET)",
    requests: 2,
  },
  "an answer that breaks off": {
    behaviour: async (_, response) => {
      response.writeHead(200, { "content-length": "100" });
      response.write("[");
      await new Promise((resolve) => setTimeout(resolve, 10));
      response.destroy();
    },
    told: "the connection broke off",
    requests: 2,
  },
  silence: {
    behaviour: () => {},
    timeoutMs: 300,
    told: "no answer within 300 ms",
    requests: 1,
  },
  "a byte now and then": {
    behaviour: async (_, response) => {
      for (let i = 0; i < 20 && !response.destroyed; i++) {
        response.write(" ");
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    },
    timeoutMs: 300,
    told: "no answer within 300 ms",
    requests: 1,
  },
};

describe.each(Object.entries(failures))(
  "%s instead of an answer",
  (_, { behaviour, told, requests, ...options }) => {
    test("is no answer, and a read is tried again at most once", async () => {
      node.behave(behaviour);
      const failure = await failureOf(createRpc(options).ask([call("a"), call("b")]));
      expect(failure.message).toBe("base could not be reached; try again");
      expect(failure.cause).toEqual(new Error(told));
      expect(failure.hints).toEqual([`RPC endpoint 1 of 1 of base: ${told}`]);
      expect(node.batches).toHaveLength(requests);
    });
  },
);

test("a read that fails once is answered", async () => {
  node.behave((_, response) => {
    node.behave(echo);
    response.destroy();
  });
  expect(results(await createRpc().ask([call("a")]))).toEqual(["a"]);
});

test("an address where nothing listens is no answer", async () => {
  await node.stop();
  const failure = await failureOf(createRpc().ask([call("a")]));
  expect(failure.hints).toEqual(["RPC endpoint 1 of 1 of base: the connection failed (ECONNREFUSED)"]);
});

test("an answer without end is cut", async () => {
  node.behave((_, response) => {
    const spaces = " ".repeat(1 << 20);
    const pour = (): void => {
      while (!response.destroyed && response.write(spaces));
      if (!response.destroyed) response.once("drain", pour);
    };
    pour();
  });
  const failure = await failureOf(createRpc().ask([call("a")]));
  expect(failure.cause).toEqual(new Error("answered with more than 10485760 bytes"));
});

test("what waited longer than a request may take is not sent any more", async () => {
  node.behave(async (_, response) => {
    node.behave(() => {});
    await new Promise((resolve) => setTimeout(resolve, 320));
    sendJson(response, {}, 503);
  });
  const rpc = createRpc({ maxInFlight: 1, timeoutMs: 480 });
  const first = failureOf(rpc.ask([call("a")]));
  await expect.poll(() => node.batches.length).toBe(1);
  const second = failureOf(rpc.ask([call("b")]));
  expect((await first).cause).toEqual(new Error("no answer within 480 ms"));
  expect((await second).cause).toEqual(new Error("not sent: earlier requests got no answer"));
  expect(node.batches).toHaveLength(2);
});

test("no key in an RPC URL gets into an error, even when the provider quotes it", async () => {
  const { port } = new URL(node.url);
  const key = "s3cr3t-k3y-0123456789";
  node.behave(
    refusing({ code: 429, message: `too many requests for http://127.0.0.1:${port}/v2/${key}, key ${key}` }),
  );
  const rpc = createRpc({ urls: [`http://user:passw0rd123@127.0.0.1:${port}/v2/${key}?token=tok3n-abcdef`] });
  const failure = await failureOf(rpc.ask([call("a")]));
  const shown = JSON.stringify([failure.message, failure.hints, String(failure.cause), failure.stack]);
  for (const secret of [key, port, "passw0rd123", "tok3n-abcdef"]) expect(shown).not.toContain(secret);
  expect(failure.hints[0]).toContain("too many requests");
});

test.each(["", "localhost:8545", "ws://127.0.0.1/s3cr3t-k3y", "http://[s3cr3t-k3y"])(
  "%j is refused as a URL without being quoted",
  (url) => {
    expect(() => createRpc({ urls: [node.url, url] })).toThrow(
      new KitError("RPC endpoint 2 of base is not a URL that begins with http:// or https://"),
    );
  },
);

test("credentials in a URL are sent", async () => {
  const { port } = new URL(node.url);
  let authorization: string | undefined;
  node.behave((calls, response, body) => {
    authorization = response.req.headers.authorization;
    return echo(calls, response, body);
  });
  await createRpc({ urls: [`http://user:pass@127.0.0.1:${port}/`] }).ask([call("a")]);
  expect(authorization).toBe(`Basic ${btoa("user:pass")}`);
});

/** A node that takes no body above a size: HTTP 413. */
const limited =
  (bytes: number): Behaviour =>
  (calls, response, body) =>
    body.length > bytes ? void response.writeHead(413).end() : echo(calls, response, body);

describe("a node that finds a batch too large", () => {
  beforeEach(() => node.behave(limited(1_000)));

  test("gets it in parts, and every caller is answered", async () => {
    const rpc = createRpc();
    const names = Array.from({ length: 20 }, (_, index) => `${index} ${"x".repeat(100)}`);
    const answers = await Promise.all(names.map((name) => rpc.ask([call(name)])));
    expect(answers.flatMap(results)).toEqual(names);
  });

  test("refuses what is too large by itself to its caller alone", async () => {
    const rpc = createRpc();
    const [small, large, other] = await Promise.all([
      rpc.ask([call("small")]),
      rpc.ask([call("x".repeat(2_000))]),
      rpc.ask([call("other")]),
    ]);
    expect([small, other].flatMap((answers) => results(answers ?? []))).toEqual(["small", "other"]);
    expect(large).toEqual([{ error: { code: 413, message: "HTTP 413", data: undefined }, endpoint: "1" }]);
  });

  test("gets transactions in parts, in their order, and what it does not take has an unknown fate", async () => {
    const rpc = createRpc();
    const transactions = ["1", "2", "3", "4", "5"].map((name) => call(name.repeat(300)));
    await rpc.send(transactions);
    const taken = node.batches.filter((batch) => JSON.stringify(batch).length <= 1_000).flat();
    expect(taken.map(({ params }) => params)).toEqual(transactions.map(({ params }) => params));

    const failure = await failureOf(rpc.send([call("x".repeat(2_000)), call("last")]));
    expect(failure.hints).toEqual(["RPC endpoint 1 of 1 of base: HTTP 413"]);
    expect(node.batches.at(-1)).toMatchObject([{ params: ["last"] }]);
  });
});

describe("sending", () => {
  test("goes out in order, once, and whatever the node says of single calls is fine", async () => {
    node.behave(refusing({ code: -32000, message: "already known" }));
    await createRpc({ maxBatch: 2 }).send(["a", "b", "c"].map(call));
    expect(node.batches.map((batch) => batch.map(({ params }) => params[0]))).toEqual([["a", "b"], ["c"]]);
  });

  test.each([
    "malformed JSON",
    "one error for the whole batch",
    "429",
    "503",
    "a reset connection",
    "silence",
  ])("is not repeated at the only endpoint after %s, and its fate is unknown", async (kind) => {
    node.behave(failures[kind]?.behaviour ?? echo);
    const { timeoutMs = 5_000, told } = failures[kind] ?? {};
    const failure = await failureOf(createRpc({ timeoutMs }).send([call("a")]));
    expect(failure.cause).toEqual(new Error(told));
    expect(node.batches).toHaveLength(1);
  });

  test("does not wait for reads", async () => {
    node.behave((calls, response, body) => {
      if (calls[0]?.params[0] === "write") return echo(calls, response, body);
    });
    const rpc = createRpc({ maxInFlight: 1, timeoutMs: 1_000 });
    const read = failureOf(rpc.ask([call("read")]));
    await expect.poll(() => node.batches.length).toBe(1);
    await rpc.send([call("write")]);
    await read;
  });
});
