import { Agent, request } from "node:http";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  answering,
  type ReceivedCall,
  type StubNode,
  startStubNode,
} from "../../../test/support/stub-node.ts";
import { createKeepAlivePost, HttpFailure } from "../../util/http-client.ts";
import type { ConnectionFault } from "./connection-faults.ts";
import { createFaultProxy, type FaultProxy } from "./create-faults.ts";
import type { ConnectionFaultSpec } from "./fault-spec.ts";

let node: StubNode;
let proxy: FaultProxy;
let post: ReturnType<typeof createKeepAlivePost>;
beforeEach(async () => {
  node = await startStubNode(
    answering(({ method, params }) => (method === "eth_blockNumber" ? "0x64" : params)),
  );
  proxy = await createFaultProxy({ target: node.url });
  post = createKeepAlivePost(new URL(proxy.url), { timeoutMs: 25_000, maxResponseBytes: 1_000_000 });
});
afterEach(async () => {
  post.close();
  await proxy[Symbol.asyncDispose]();
  await node.stop();
});

type Fault = Omit<Extract<ConnectionFaultSpec, { kind: string }>, "network"> & Record<string, unknown>;
const set = (fault: Fault): ConnectionFault =>
  proxy.faults.add({ network: "base", ...fault } as ConnectionFaultSpec);

const write = (...methods: string[]) =>
  JSON.stringify(
    methods.map((method, index) => ({ jsonrpc: "2.0", id: index + 1, method, params: [index] })),
  );

/** The outcome of a batch with these methods: the answers by their order, or how it failed. */
async function ask(...methods: string[]): Promise<unknown> {
  try {
    const text = await post(write(...methods));
    try {
      const answers: { id: number; result?: unknown; error?: { code: number } }[] = JSON.parse(text);
      return answers.map(({ result, error }) => error?.code ?? result);
    } catch {
      return `not JSON: ${text}`;
    }
  } catch (error) {
    if (error instanceof HttpFailure) return error.status ?? error.kind;
    throw error;
  }
}

const received = () => node.batches.map((calls: ReceivedCall[]) => calls.map(({ method }) => method));

describe("without a fault", () => {
  test("a request reaches the node and its answer comes back, as they are", async () => {
    const big = JSON.stringify([{ id: "x", method: "big", params: ["é".repeat(300_000)], more: true }]);
    expect(JSON.parse(await post(big))).toEqual([{ jsonrpc: "2.0", id: "x", result: ["é".repeat(300_000)] }]);
    expect(node.batches[0]).toEqual(JSON.parse(big));
  });

  test("connections are kept, before a fault and after it", async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const ports = new Set<number>();
    const once = () =>
      new Promise<number>((resolve, reject) => {
        const outgoing = request(proxy.url, { method: "POST", agent }, (response) => {
          ports.add(response.socket.localPort ?? 0);
          response.resume().on("end", () => resolve(response.statusCode ?? 0));
        });
        outgoing.on("error", reject).end(write("a"));
      });
    await once();
    await once();
    const fault = set({ kind: "status", status: 502 });
    expect(await once()).toBe(502);
    proxy.faults.remove(fault);
    expect(await once()).toBe(200);
    expect(ports.size).toBe(1);
    agent.destroy();
  });

  test("a node that is gone looks as it does without the proxy", async () => {
    await ask("a");
    await node.stop();
    expect(await ask("a")).toBe("connection");
    set({ kind: "delay", ms: 1 });
    expect(await ask("a")).toBe("connection");
    node = await startStubNode(answering(() => null));
  });
});

describe("a fault of the connection", () => {
  test.each<[string, Fault, unknown, string[][]]>([
    ["answer-lost", { kind: "answer-lost" }, "connection", [["a", "b"]]],
    ["rate-limited", { kind: "rate-limited" }, 429, []],
    ["reset", { kind: "reset" }, "connection", []],
    ["status", { kind: "status", status: 503 }, 503, []],
    ["error", { kind: "error", method: "b", code: -7, message: "no" }, [[0], -7], [["a"]]],
    ["error for every call", { kind: "error", code: -7, message: "no" }, [-7, -7], []],
    ["malformed", { kind: "malformed" }, "not JSON: <html><body>Maintenance</body></html>", []],
    [
      "malformed, cut-off",
      { kind: "malformed", form: "cut-off" },
      expect.stringMatching(/^not JSON: \[\{/),
      [["a", "b"]],
    ],
    ["delay", { kind: "delay", ms: 30 }, [[0], [1]], [["a", "b"]]],
  ])("%s: what the service sees, and what the node gets", async (_, fault, seen, got) => {
    set(fault);
    expect(await ask("a", "b")).toEqual(seen);
    expect(received()).toEqual(got);
  });

  test("hang: there is no answer until it is removed, and then none either", async () => {
    const fault = set({ kind: "hang" });
    let answer: unknown;
    const asked = ask("a").then((seen) => {
      answer = seen;
    });
    await expect.poll(() => fault.fired).toBe(1);
    expect(answer).toBeUndefined();
    proxy.faults.remove(fault);
    await asked;
    expect(answer).toBe("connection");
    expect(received()).toEqual([]);
  });

  test("a delay that is removed holds nothing back any more, and the node had the request at once", async () => {
    const fault = set({ kind: "delay", ms: 600_000 });
    const asked = ask("a");
    await expect.poll(received).toEqual([["a"]]);
    proxy.faults.remove(fault);
    expect(await asked).toEqual([[0]]);
  });

  test("a rate limit says when to come again", async () => {
    set({ kind: "rate-limited", retryAfterSeconds: 7 });
    await expect(post(write("a"))).rejects.toMatchObject({ status: 429, retryAfterMs: 7_000 });
  });

  test("what is no JSON-RPC at all goes through", async () => {
    set({ kind: "reset", method: "a" });
    node.behave((_, response) => void response.end("fine"));
    expect(await post('[{"method":1}]')).toBe("fine");
  });
});

describe("which calls a fault hits", () => {
  test.each<[string, Fault, unknown[]]>([
    ["all of a method by default", { kind: "status", status: 500, method: "eth_send*" }, [500, 500, 500]],
    ["the nth alone", { kind: "status", status: 500, method: "eth_send*", nth: 2 }, ["ok", 500, "ok"]],
    ["so many", { kind: "status", status: 500, times: 2 }, [500, 500, "ok"]],
    ["so many from the nth on", { kind: "status", status: 500, nth: 2, times: 5 }, ["ok", 500, 500]],
    [
      "many stars as one, in no time",
      { kind: "status", status: 500, method: `${"*".repeat(40)}x` },
      ["ok", "ok", "ok"],
    ],
    ["none of another method", { kind: "status", status: 500, method: "send" }, ["ok", "ok", "ok"]],
  ])("%s", async (_, fault, seen) => {
    set(fault);
    const answers = [];
    for (let turn = 0; turn < 3; turn++) {
      const answer = await ask("eth_sendRawTransaction", "eth_sendRawTransaction");
      answers.push(typeof answer === "number" ? answer : "ok");
    }
    expect(answers).toEqual(seen);
  });

  test("single calls are counted across batches", async () => {
    const fault = set({ kind: "error", method: "a", nth: 2, times: 2, code: -7, message: "" });
    expect(await ask("a", "b", "a")).toEqual([[0], [1], -7]);
    expect(await ask("a", "a")).toEqual([-7, [1]]);
    expect(fault.fired).toBe(2);
  });

  test("a fault that has hit as often as it was to lets everything through unread again", async () => {
    const fault = set({ kind: "reset", times: 1 });
    expect([proxy.faults.armed, fault.usedUp]).toEqual([true, false]);
    expect(await ask("a")).toBe("connection");
    expect([proxy.faults.armed, fault.usedUp]).toEqual([false, true]);
    expect(await ask("a")).toEqual([[0]]);
  });

  test("of several, each counts what it sees, and the one that leaves least decides", async () => {
    const late = set({ kind: "delay", ms: 1 });
    const none = set({ kind: "reset" });
    expect(await ask("a")).toBe("connection");
    expect([late.fired, none.fired]).toEqual([1, 1]);
    proxy.faults.remove(none);
    expect(await ask("a")).toEqual([[0]]);
  });
});

test("many at once, faults coming and going: no request gets the answer to another", async () => {
  const mix = setInterval(() => {
    const fault = set({ kind: "error", method: "b", code: -7, message: "" });
    setTimeout(() => proxy.faults.remove(fault), 3);
  }, 5);
  const answers = await Promise.all(
    Array.from({ length: 400 }, async (_, index) => {
      await new Promise((resolve) => setTimeout(resolve, index / 4));
      const text = await post(
        JSON.stringify([{ id: index, method: index % 2 ? "a" : "b", params: [index] }]),
      );
      const [answer]: [{ id: number; result?: number[]; error?: object }] = JSON.parse(text);
      return answer.id === index && (answer.result?.[0] === index || answer.error !== undefined);
    }),
  );
  clearInterval(mix);
  expect(answers).not.toContain(false);
});
