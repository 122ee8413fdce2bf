import { spawn } from "node:child_process";
import { once } from "node:events";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { answerAsChain, misbehaviours } from "../../../test/support/misbehaviour.ts";
import { createRandom } from "../../../test/support/random.ts";
import { noteRequests } from "../../../test/support/request-endings.ts";
import {
  answering,
  type Behaviour,
  refusing,
  type StubNode,
  sendJson,
  startStubNode,
} from "../../../test/support/stub-node.ts";
import { UndeterminedError } from "../../util/errors.ts";
import { headCall, readHead } from "./calls.ts";
import { createHttpRpc, type HttpRpcOptions } from "./http-rpc.ts";
import type { Rpc, RpcCall } from "./rpc.ts";

/** A node of a chain that the test moves on by hand. */
type Node = StubNode & { chain: { chainId: number; head: bigint }; recover(): void };

const chainId = 8453;
const random = createRandom();
const open: { stop?(): Promise<void>; close?(): void }[] = [];

async function startNode(head = 100n): Promise<Node> {
  const chain = { chainId, head };
  const well = answering((call) => answerAsChain(chain, call));
  const node = await startStubNode(well);
  open.push(node);
  return Object.assign(node, { chain, recover: () => node.behave(well) });
}

/** Everything much faster than usual, but for what a busy machine would feel. */
const pace = { passOverMs: 2_000, probeMs: 15, firstPauseMs: 5, longestPauseMs: 40, slowMs: 5_000 };

function createRpc(nodes: readonly { url: string }[], options: Partial<HttpRpcOptions> = {}): Rpc {
  const [first = "", ...others] = nodes.map(({ url }) => url);
  const rpc = createHttpRpc({
    network: "base",
    chainId,
    urls: [first, ...others],
    timeoutMs: 4_000,
    retryDelayMs: 1,
    observer: noted.observer,
    ...options,
    pace: { ...pace, ...options.pace },
  });
  open.push(rpc);
  return rpc;
}

let preferred: Node;
let second: Node;
let noted: ReturnType<typeof noteRequests>;
beforeEach(async () => {
  noted = noteRequests();
  preferred = await startNode();
  second = await startNode();
});
afterEach(async () => {
  for (const each of open) each.close?.();
  await Promise.all(open.splice(0).map((each) => each.stop?.()));
});

const echo = (name: string): RpcCall => ({ method: "echo", params: [name] });

/** Asks for something that no other call asks for, and gives it back. */
async function ask(rpc: Rpc): Promise<unknown> {
  const [answer] = await rpc.ask([echo(`${random.seed} ${Math.random()}`)]);
  return answer?.result;
}

const asked = (node: StubNode) =>
  node.batches.filter((batch) => batch.some(({ method }) => method === "echo"));
const probes = (node: StubNode) =>
  node.batches.filter((batch) => !batch.some(({ method }) => method === "echo"));
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
/** Which endpoint a read asks first. */
const inUse = (rpc: Rpc) => rpc.endpoints()[0]?.endpoint;
const askAt = (rpc: Rpc, label: string) =>
  rpc
    .endpoints()
    .find(({ endpoint }) => endpoint === label)
    ?.ask([echo("alone")]) ?? Promise.reject(new Error(`there is no endpoint ${label}`));

/** Looks again and again, as long as it takes on a busy machine. */
const eventually = <T>(look: () => T) => expect.poll(look, { interval: 5 });

/** Resolves when all endpoints have answered well. */
const untilAllAnswer = (count = 2) => eventually(() => noted.endings()).toEqual(Array(count).fill("well"));

/** Resolves when the preferred endpoint is in use again. */
const untilBack = (rpc: Rpc) => eventually(() => inUse(rpc)).toBe("1");

async function failureOf(promise: Promise<unknown>): Promise<UndeterminedError> {
  const error = await promise.then(
    () => new Error("it did not fail"),
    (error: unknown) => error,
  );
  if (!(error instanceof UndeterminedError)) throw error;
  return error;
}

describe.each(random.shuffle(Object.entries(misbehaviours)))(
  `%s (seed ${random.seed})`,
  (_, { kind, of }) => {
    // What takes its time must take little of it here.
    const isSlow = kind === "timeout";
    const repetitions = isSlow ? 2 : 3;

    test("at the preferred endpoint goes unnoticed, passes it over, and is forgotten when it recovers", async () => {
      const rpc = createRpc([preferred, second], isSlow ? { pace: { passOverMs: 400 } } : {});
      const well = answering((call) => answerAsChain(preferred.chain, call));
      await ask(rpc);
      for (let repetition = 0; repetition < repetitions; repetition++) {
        await untilBack(rpc);
        preferred.chain.head += 10n;
        second.chain.head += 10n;
        await ask(rpc);
        preferred.behave(of(well));
        const questions = random.between(2, 12);
        for (let question = 0; question < questions; question++) expect(await ask(rpc)).toBeTypeOf("string");
        await eventually(() => noted.endings()).toEqual([kind, "well"]);
        const before = asked(preferred).length;
        for (let question = 0; question < questions; question++) expect(await ask(rpc)).toBeTypeOf("string");
        expect(asked(preferred)).toHaveLength(before);
        expect(inUse(rpc)).toBe("2");
        preferred.recover();
      }
      await untilBack(rpc);
      const before = asked(preferred).length;
      await ask(rpc);
      expect(asked(preferred)).toHaveLength(before + 1);

      const failed = noted.exchanges.filter(({ endpoint, error }) => endpoint === "1" && error === kind);
      expect(failed.length).toBeGreaterThanOrEqual(repetitions);
    });

    test("at all endpoints is no answer, and the first one that recovers is used", async () => {
      const rpc = createRpc([preferred, second], isSlow ? { timeoutMs: 300, pace: { passOverMs: 150 } } : {});
      const outcome = () => ask(rpc).catch((error: unknown) => error);
      await eventually(outcome).toBeTypeOf("string");
      const well = answering((call) => answerAsChain(second.chain, call));
      preferred.behave(of(well));
      second.behave(of(well));
      await eventually(outcome).toBeInstanceOf(UndeterminedError);
      second.recover();
      await eventually(outcome).toBeTypeOf("string");
    });
  },
);

describe("the order of the configuration", () => {
  test("decides among endpoints that are well", async () => {
    const rpc = createRpc([preferred, second]);
    for (let question = 0; question < 5; question++) await ask(rpc);
    expect([asked(preferred).length, asked(second).length]).toEqual([5, 0]);
    expect(rpc.endpoints().map(({ endpoint }) => endpoint)).toEqual(["1", "2"]);
  });

  test("gives way to an endpoint that is several times as fast, until the first is fast again", async () => {
    const well = answering((call) => answerAsChain(preferred.chain, call));
    const rpc = createRpc([preferred, second], { pace: { slowMs: 30 } });
    preferred.behave(async (calls, response, body) => {
      await sleep(100);
      await well(calls, response, body);
    });
    await ask(rpc);
    await eventually(() => inUse(rpc)).toBe("2");
    expect(noted.endings()).toEqual(["well", "well"]);
    const before = asked(preferred).length;
    await ask(rpc);
    expect(asked(preferred)).toHaveLength(before);
    preferred.recover();
    await untilBack(rpc);
  });

  test("does not make a slow endpoint useless where the fast one fails", async () => {
    const well = answering((call) => answerAsChain(preferred.chain, call));
    const rpc = createRpc([preferred, second], { pace: { slowMs: 30 } });
    preferred.behave(async (calls, response, body) => {
      await sleep(100);
      await well(calls, response, body);
    });
    await ask(rpc);
    await eventually(() => inUse(rpc)).toBe("2");
    second.behave((_, response) => void response.destroy());
    expect(await ask(rpc)).toBeTypeOf("string");
  });
});

describe("calls that are refused singly", () => {
  test("are for other endpoints from the second time on", async () => {
    const rpc = createRpc([preferred, second]);
    await ask(rpc);
    const seen = async (refused: number) => {
      const before = asked(second).length;
      await rpc.ask([echo("refused")], refused);
      return asked(second).length - before;
    };
    expect([await seen(0), await seen(1), await seen(2), await seen(3), await seen(4)]).toEqual([
      0, 0, 1, 0, 1,
    ]);
  });

  test("are asked again at the only endpoint", async () => {
    const rpc = createRpc([preferred]);
    for (const refused of [0, 1, 2, 3]) await rpc.ask([echo("refused")], refused);
    expect(asked(preferred)).toHaveLength(4);
  });
});

describe("a batch that is too large for one endpoint", () => {
  const refuseAbove =
    (bytes: number, node: Node): Behaviour =>
    (calls, response, body) =>
      body.length > bytes
        ? void response.writeHead(413).end()
        : answering((call) => answerAsChain(node.chain, call))(calls, response, body);

  test("is split, and changes nothing about the endpoint", async () => {
    preferred.behave(refuseAbove(700, preferred));
    const rpc = createRpc([preferred, second]);
    const names = Array.from({ length: 10 }, (_, index) => `${index} ${"x".repeat(100)}`);
    const answers = await Promise.all(names.map((name) => rpc.ask([echo(name)])));
    expect(answers.flat().map(({ result }) => result)).toEqual(names);
    expect(inUse(rpc)).toBe("1");
    expect(asked(second)).toEqual([]);
  });

  test("goes to the next where it is a transaction that is too large by itself", async () => {
    preferred.behave(refuseAbove(700, preferred));
    const rpc = createRpc([preferred, second]);
    await rpc.send([echo("x".repeat(1_000))]);
    expect(asked(second)).toHaveLength(1);
    expect(inUse(rpc)).toBe("1");
  });
});

describe("heads", () => {
  const headOf = async (rpc: Rpc) => readHead((await rpc.ask([headCall]))[0]?.result)?.number;

  test("of answers never fall far behind one that was given before, whatever the endpoints do", async () => {
    const third = await startNode();
    const nodes: readonly [Node, ...Node[]] = [preferred, second, third];
    const maxLagBlocks = 3n;
    const rpc = createRpc(nodes, { timeoutMs: 60, pace: { maxLagBlocks, passOverMs: 30, probeMs: 20 } });
    let newest = 100n;
    let highest = 0n;
    let answered = 0;
    for (let step = 0; step < 300; step++) {
      const node = random.pick(nodes);
      const well = answering((call) => answerAsChain(node.chain, call));
      const goOn = () => {
        newest += 1n;
        for (const { chain } of nodes) chain.head += 1n;
      };
      const catchUp = () => {
        node.chain.head = newest;
      };
      const fallBehind = () => {
        node.chain.head -= BigInt(random.between(1, 20));
      };
      const fail = () => node.behave((_, response) => void response.destroy());
      const lieOnce = () =>
        node.behave((calls, response, body) => {
          node.behave(well);
          return answering((call) => answerAsChain({ chainId, head: 1n }, call))(calls, response, body);
        });
      const recover = () => node.recover();
      random.pick([goOn, goOn, catchUp, catchUp, fallBehind, fail, lieOnce, recover, recover])();
      const head = await headOf(rpc).catch(() => undefined);
      if (head === undefined) continue;
      answered++;
      expect(head, `seed ${random.seed}, step ${step}`).toBeGreaterThanOrEqual(highest - maxLagBlocks);
      if (head > highest) highest = head;
    }
    expect(answered, `seed ${random.seed}`).toBeGreaterThan(100);
  });

  test("are held against any read, not only against one that asks for them", async () => {
    const rpc = createRpc([preferred, second], { pace: { maxLagBlocks: 5n } });
    preferred.chain.head = 200n;
    second.chain.head = 200n;
    await ask(rpc);
    preferred.chain.head = 194n;
    expect(await ask(rpc)).toBeTypeOf("string");
    expect(asked(second)).toHaveLength(1);
    expect((await failureOf(askAt(rpc, "1"))).hints).toEqual([
      "RPC endpoint 1 of 2 of base: is 6 blocks behind, at 194",
    ]);
  });

  test("within the lag that is allowed change nothing", async () => {
    const rpc = createRpc([preferred, second], { pace: { maxLagBlocks: 5n } });
    second.chain.head = 105n;
    for (let question = 0; question < 3; question++) await ask(rpc);
    await untilAllAnswer();
    expect(asked(preferred)).toHaveLength(3);
  });

  test("that arrive while a request is under way are not held against it", async () => {
    const rpc = createRpc([preferred, second], { pace: { probeMs: 10 } });
    await ask(rpc);
    const well = answering((call) => answerAsChain({ chainId, head: 100n }, call));
    preferred.behave(async (calls, response, body) => {
      if (!calls.some(({ method }) => method === "echo")) return well(calls, response, body);
      second.chain.head = 150n;
      // The answer to the first of two probes has been read when the second comes.
      const before = probes(second).length;
      await eventually(() => probes(second).length).toBeGreaterThan(before + 1);
      await well(calls, response, body);
    });
    await ask(rpc);
    expect(asked(second)).toHaveLength(0);
  });

  test("are forgotten in the end where the whole chain went back", async () => {
    const rpc = createRpc([preferred, second], { pace: { rememberHeadMs: 300 } });
    await ask(rpc);
    preferred.chain.head = 10n;
    second.chain.head = 10n;
    const failure = await failureOf(ask(rpc));
    expect(failure.hints).toEqual([
      "RPC endpoint 1 of 2 of base: is 90 blocks behind, at 10",
      "RPC endpoint 2 of 2 of base: is 90 blocks behind, at 10",
    ]);
    await eventually(() => ask(rpc).catch(() => undefined)).toBeTypeOf("string");
  });

  test("of a single endpoint may go back at once", async () => {
    const rpc = createRpc([preferred]);
    expect(await headOf(rpc)).toBe(100n);
    preferred.chain.head = 1n;
    expect(await headOf(rpc)).toBe(1n);
  });
});

describe("a broadcast", () => {
  const raws = ["0x01", "0x02", "0x03"];
  const transactions = raws.map((raw): RpcCall => ({ method: "eth_sendRawTransaction", params: [raw] }));
  const sent = (node: StubNode) =>
    node.batches
      .flat()
      .filter(({ method }) => method === "eth_sendRawTransaction")
      .map(({ params }) => params[0]);

  test("goes to one endpoint, in order, in one request", async () => {
    const rpc = createRpc([preferred, second]);
    await rpc.send(transactions);
    expect([sent(preferred), sent(second)]).toEqual([raws, []]);
  });

  const answers = random.shuffle(
    Object.entries(misbehaviours).filter(([, { kind }]) => kind !== "wrong_chain" && kind !== "lagging"),
  );
  test.each(answers)(
    "that gets %s goes to the next as the same bytes, all of them",
    async (_, { kind, of }) => {
      const passOverMs = kind === "timeout" ? 400 : 2_000;
      const rpc = createRpc([preferred, second], { maxBatch: 4, pace: { passOverMs } });
      const well = answering((call) => answerAsChain(preferred.chain, call));
      let batch = 0;
      // It takes the first batch, and fails at the second.
      preferred.behave((calls, response, body) => {
        const isSend = calls.some(({ method }) => method === "eth_sendRawTransaction");
        return isSend && ++batch === 2 ? of(well)(calls, response, body) : well(calls, response, body);
      });
      await rpc.send(transactions);
      expect([sent(preferred), sent(second)]).toEqual([raws, raws]);
    },
  );

  test("that every endpoint leaves unanswered has an unknown fate", async () => {
    const rpc = createRpc([preferred, second]);
    for (const node of [preferred, second]) node.behave((_, response) => void response.destroy());
    const failure = await failureOf(rpc.send(transactions));
    expect(failure.hints).toEqual([
      "RPC endpoint 1 of 2 of base: the connection failed (ECONNRESET)",
      "RPC endpoint 2 of 2 of base: the connection failed (ECONNRESET)",
    ]);
  });

  test("for everywhere goes to all that are well, and one answer will do", async () => {
    const third = await startNode();
    const rpc = createRpc([preferred, second, third]);
    await ask(rpc);
    await untilAllAnswer(3);
    second.behave((_, response) => void response.destroy());
    await rpc.send(transactions, { everywhere: true });
    expect([sent(preferred), sent(second), sent(third)]).toEqual([raws, raws, raws]);
    await rpc.send(transactions, { everywhere: true });
    expect([sent(preferred).length, sent(second).length, sent(third).length]).toEqual([6, 3, 6]);
  });

  test("for everywhere goes once to the only endpoint", async () => {
    await createRpc([preferred]).send(transactions, { everywhere: true });
    expect(sent(preferred)).toEqual(raws);
  });

  test("never goes to an endpoint of another chain", async () => {
    const rpc = createRpc([preferred, second]);
    preferred.chain.chainId = 10;
    await ask(rpc);
    second.behave((_, response) => void response.destroy());
    await failureOf(rpc.send(transactions, { everywhere: true }));
    expect(sent(preferred)).toEqual([]);
  });

  test("is not held up by a rate limit", async () => {
    const rpc = createRpc([preferred]);
    preferred.behave((_, response) => void response.writeHead(429, { "retry-after": "60" }).end());
    await failureOf(ask(rpc));
    preferred.recover();
    await rpc.send(transactions);
    expect(sent(preferred)).toEqual(raws);
  });
});

describe("each endpoint by itself", () => {
  const labels = (rpc: Rpc) => rpc.endpoints().map(({ endpoint }) => endpoint);

  // It is left alone for longer than the test takes.
  const patient = {
    pace: { firstPauseMs: 60_000, longestPauseMs: 60_000, probeMs: 60_000, askAgainMs: 60_000 },
  };

  test.each([
    {
      which: "of another chain",
      spoil: ({ chain }: Node) => Object.assign(chain, { chainId: 10 }),
      detail: "serves chain 10, not 8453",
    },
    {
      which: "that is left alone after failures",
      spoil: (node: Node) => node.behave((_, response) => void response.destroy()),
      detail: "the connection failed (ECONNRESET)",
    },
  ])("is listed, also one $which, which answers nothing", async ({ spoil, detail }) => {
    const rpc = createRpc([preferred, second], patient);
    expect(labels(rpc)).toEqual(["1", "2"]);
    spoil(preferred);
    await ask(rpc);
    expect(labels(rpc)).toEqual(["2", "1"]);
    preferred.recover();
    expect((await failureOf(askAt(rpc, "1"))).hints).toEqual([`RPC endpoint 1 of 2 of base: ${detail}`]);
    // Neither of them was asked in its place, or again.
    expect([asked(preferred).length, asked(second).length]).toEqual([1, 1]);
    expect(await askAt(rpc, "2")).toEqual([{ endpoint: "2", result: "alone" }]);
  });

  test("is asked again long before the pause of failures that came one after the other is over", async () => {
    const rpc = createRpc([preferred, second], { pace: { ...patient.pace, askAgainMs: 20 } });
    preferred.behave((_, response) => void response.destroy());
    await ask(rpc);
    await failureOf(askAt(rpc, "1"));
    preferred.recover();
    await eventually(async () => (await askAt(rpc, "1").catch(() => undefined))?.length).toBe(1);
    // Reads go to it again.
    expect(labels(rpc)).toEqual(["1", "2"]);
  });
});

describe("Retry-After of the only endpoint", () => {
  const limit = (seconds: string) =>
    preferred.behave((_, response) => void response.writeHead(429, { "retry-after": seconds }).end());

  test("is waited for when it is short", async () => {
    const rpc = createRpc([preferred], { pace: { longestPauseMs: 60_000 } });
    limit("1");
    const answer = ask(rpc);
    await eventually(() => asked(preferred).length).toBe(1);
    const since = performance.now();
    preferred.recover();
    expect(await answer).toBeTypeOf("string");
    expect(performance.now() - since).toBeGreaterThan(800);
  });

  test("is no time to ask when it is long, and nothing is sent until it is over", async () => {
    const rpc = createRpc([preferred], { pace: { longestPauseMs: 60_000 } });
    limit("30");
    expect((await failureOf(ask(rpc))).hints).toEqual(["RPC endpoint 1 of 1 of base: HTTP 429"]);
    preferred.recover();
    const failure = await failureOf(ask(rpc));
    expect(failure.hints).toEqual(["RPC endpoint 1 of 1 of base: wants to be left alone for another 30 s"]);
    expect(preferred.batches).toHaveLength(1);
  });

  test("is never longer than the longest pause", async () => {
    const rpc = createRpc([preferred], { pace: { longestPauseMs: 100 } });
    limit("31536000");
    await failureOf(ask(rpc));
    preferred.recover();
    expect(await ask(rpc)).toBeTypeOf("string");
  });
});

describe("Retry-After of one of several endpoints", () => {
  const limit = (node: StubNode, seconds: string) =>
    node.behave((_, response) => void response.writeHead(429, { "retry-after": seconds }).end());

  test("is not waited for while there is any other", async () => {
    // No probe comes between: the one failure is for the question.
    const slowly = { longestPauseMs: 60_000, firstPauseMs: 60_000, probeMs: 60_000 };
    const rpc = createRpc([preferred, second], { pace: slowly });
    await ask(rpc);
    await untilAllAnswer();
    second.behave((_, response) => {
      second.recover();
      response.destroy();
    });
    limit(preferred, "2");
    await failureOf(ask(rpc));
    const before = asked(preferred).length;
    expect(await ask(rpc)).toBeTypeOf("string");
    expect(asked(preferred)).toHaveLength(before);
  });

  test("of all of them is waited for when it is short, and no time to ask when it is long", async () => {
    const rpc = createRpc([preferred, second], { pace: { longestPauseMs: 60_000 } });
    limit(preferred, "30");
    limit(second, "1");
    await failureOf(ask(rpc));
    second.recover();
    expect(await ask(rpc)).toBeTypeOf("string");
    limit(second, "40");
    await failureOf(ask(rpc));
    const before = asked(preferred).length + asked(second).length;
    expect((await failureOf(ask(rpc))).hints).toEqual([
      expect.stringMatching(/^RPC endpoint 1 of 2 of base: wants to be left alone for another \d+ s$/),
      "RPC endpoint 2 of 2 of base: wants to be left alone for another 40 s",
    ]);
    expect(asked(preferred).length + asked(second).length).toBe(before);
  });

  test("does not hold up the end", async () => {
    for (const nodes of [[preferred], [preferred, second]]) {
      const rpc = createRpc(nodes, { pace: { longestPauseMs: 600_000 } });
      for (const node of nodes) limit(node, "300");
      const before = nodes.map((node) => asked(node).length);
      const pending = failureOf(ask(rpc).catch(() => ask(rpc)));
      await eventually(() => nodes.map((node) => asked(node).length)).toEqual(
        before.map((count) => count + 1),
      );
      rpc.close();
      await pending;
    }
  });
});

describe("in the background", () => {
  test("a single endpoint gets no requests, well or not", async () => {
    const rpc = createRpc([preferred]);
    await ask(rpc);
    await sleep(100);
    preferred.behave((_, response) => void response.destroy());
    await failureOf(ask(rpc));
    await sleep(150);
    expect(preferred.batches).toHaveLength(3);
  });

  test("no endpoint is asked before the first question", async () => {
    createRpc([preferred, second]);
    await sleep(100);
    expect([preferred.batches, second.batches]).toEqual([[], []]);
  });

  test("endpoints are probed at the given pace, and no more when there are no questions", async () => {
    const rpc = createRpc([preferred, second], { pace: { probeMs: 40, restAfterMs: 300 } });
    const since = performance.now();
    await ask(rpc);
    await eventually(() => probes(second).length).toBeGreaterThanOrEqual(3);
    for (const node of [preferred, second]) {
      expect(probes(node).length).toBeLessThanOrEqual(2 + (performance.now() - since) / 40);
    }
    await sleep(500);
    const before = [probes(preferred).length, probes(second).length];
    await sleep(150);
    expect([probes(preferred).length, probes(second).length]).toEqual(before);
    await ask(rpc);
    await eventually(() => probes(second).length).toBeGreaterThan(before[1] ?? 0);
  });

  test("a failing endpoint is probed at growing intervals", async () => {
    const rpc = createRpc([preferred, second], { pace: { firstPauseMs: 20, longestPauseMs: 1_000 } });
    preferred.behave((_, response) => void response.destroy());
    const begunAt = performance.now();
    await ask(rpc);
    await eventually(() => probes(preferred).length).toBeGreaterThanOrEqual(4);
    await sleep(400);
    // After at least 10, 20, 40, 80 ms and so on, besides two: the first goes out with the first question.
    const pauses = Math.log2((performance.now() - begunAt) / 10 + 1);
    expect(probes(preferred).length).toBeLessThanOrEqual(2 + pauses);
  });

  test("one that fails is looked at when its pause is over, however long the pace is", async () => {
    const rpc = createRpc([preferred, second], { pace: { probeMs: 60_000 } });
    await ask(rpc);
    await untilAllAnswer();
    preferred.behave((_, response) => {
      preferred.recover();
      response.destroy();
    });
    await ask(rpc);
    expect(noted.exchanges).toContainEqual(
      expect.objectContaining({ endpoint: "1", purpose: "read", error: "connection" }),
    );
    await untilBack(rpc);
  });

  test("nothing keeps a process alive", async () => {
    const module = new URL("./http-rpc.ts", import.meta.url).href;
    const program = `
      import { createHttpRpc } from ${JSON.stringify(module)};
      const rpc = createHttpRpc({ network: "base", chainId: ${chainId}, urls: ${JSON.stringify([preferred.url, second.url])} });
      await rpc.ask([{ method: "echo", params: ["x"] }]);
    `;
    const child = spawn(process.execPath, ["--input-type=module", "--eval", program], { stdio: "inherit" });
    expect(await once(child, "exit")).toEqual([0, null]);
    expect(probes(second).length).toBeLessThanOrEqual(1);
  });

  test("nothing happens after it was closed, and nothing can be asked", async () => {
    const rpc = createRpc([preferred, second], { timeoutMs: 20_000, pace: { passOverMs: 10_000 } });
    await ask(rpc);
    await untilAllAnswer();
    preferred.behave(() => {});
    second.behave(() => {});
    const pending = failureOf(ask(rpc));
    await eventually(() => asked(preferred).length).toBe(2);
    const waiting = failureOf(ask(rpc));
    const sending = failureOf(rpc.send([echo("x")]));
    rpc.close();
    rpc.close();
    const causes = (await Promise.all([pending, waiting, sending])).map(({ cause }) => String(cause));
    expect(causes).toEqual(["Error: closed", "Error: not sent: the connection was closed", "Error: closed"]);
    const before = preferred.batches.length + second.batches.length;
    const failure = await failureOf(ask(rpc));
    expect(failure.cause).toEqual(new Error("not sent: the connection was closed"));
    await failureOf(rpc.send([echo("x")]));
    await sleep(150);
    expect(preferred.batches.length + second.batches.length).toBe(before);
  });
});

describe("what is told of the endpoints", () => {
  test("says what every request was for and how it ended, without their URLs", async () => {
    const key = "s3cr3t-k3y-0123456789";
    const rpc = createRpc([{ url: `${preferred.url}/v2/${key}` }, second]);
    preferred.behave(refusing({ code: -32005, message: `too many requests for key ${key}` }));
    await ask(rpc);
    await rpc.send([{ method: "eth_sendRawTransaction", params: ["0x"] }]);
    expect(inUse(rpc)).toBe("2");
    const { exchanges } = noted;
    const { hints } = await failureOf(askAt(rpc, "1"));
    expect(hints).toEqual([expect.stringContaining("too many requests")]);
    for (const secret of [key, new URL(preferred.url).port, new URL(second.url).port]) {
      expect(JSON.stringify([hints, exchanges])).not.toContain(secret);
    }
    expect(exchanges).toContainEqual(
      expect.objectContaining({ endpoint: "1", purpose: "read", error: "rate_limited" }),
    );
    expect(exchanges).toContainEqual({
      endpoint: "2",
      purpose: "send",
      methods: ["eth_sendRawTransaction"],
      questions: [[{ method: "eth_sendRawTransaction", params: ["0x"] }]],
      durationMs: expect.any(Number),
      error: undefined,
    });
  });
});

test("an endpoint that does not say which chain it serves is passed over", async () => {
  const rpc = createRpc([preferred, second]);
  preferred.behave((calls, response) =>
    sendJson(
      response,
      calls.map((call) =>
        call.method === "eth_chainId"
          ? { id: call.id, error: { code: -32601, message: "no such method" } }
          : { id: call.id, result: answerAsChain(preferred.chain, call) },
      ),
    ),
  );
  expect(await ask(rpc)).toBeTypeOf("string");
  expect((await failureOf(askAt(rpc, "1"))).hints).toEqual([
    "RPC endpoint 1 of 2 of base: does not say which chain it serves",
  ]);
});

test("where every endpoint serves another chain, each is named", async () => {
  const rpc = createRpc([preferred, second]);
  preferred.chain.chainId = 10;
  second.chain.chainId = 137;
  const expected = [
    "RPC endpoint 1 of 2 of base: serves chain 10, not 8453",
    "RPC endpoint 2 of 2 of base: serves chain 137, not 8453",
  ];
  expect((await failureOf(ask(rpc))).hints).toEqual(expected);
  expect((await failureOf(ask(rpc))).hints).toEqual(expected);
  expect([asked(preferred).length, asked(second).length]).toEqual([1, 1]);
});
