import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { LocalCall, LocalRpc } from "../../chain/rpc/local-rpc.ts";
import { readQuantity } from "../../protocol/hex.ts";
import { membersOf } from "../../util/json.ts";
import {
  type Answer,
  type Call,
  type ConnectionFaults,
  type Hit,
  type Message,
  readAnswers,
} from "./connection-faults.ts";
import type { ConnectionFaultSpec } from "./fault-spec.ts";

/**
 * Ends an HTTP request without processing it, if a fault requires that; returns true if so. Of several such faults, the
 * one that leaves the least of the exchange wins.
 */
function breakBefore(hits: readonly Hit[], outgoing: ServerResponse): boolean {
  const cutConnection = () => void outgoing.socket?.resetAndDestroy();
  const hang = findHit(hits, "hang");
  const limited = findHit(hits, "rate-limited");
  const refused = findHit(hits, "status");
  const malformed = findHit(hits, "malformed");

  if (hang !== undefined) hang.removed.addEventListener("abort", cutConnection);
  else if (findHit(hits, "reset") !== undefined) cutConnection();
  else if (limited !== undefined) {
    const { retryAfterSeconds = 1 } = limited.spec;
    outgoing.writeHead(429, { "retry-after": `${retryAfterSeconds}` }).end("Too many requests");
  } else if (refused !== undefined) outgoing.writeHead(refused.spec.status).end();
  else if (malformed !== undefined && malformed.spec.form !== "cut-off") {
    outgoing.writeHead(200, { "content-type": "text/html" }).end("<html><body>Maintenance</body></html>");
  } else return false;
  return true;
}

/** Answers an HTTP request as modified by its faults; `answer` returns the node's answer. */
export async function breakExchange(
  hits: readonly Hit[],
  outgoing: ServerResponse,
  answer: () => Promise<string>,
): Promise<void> {
  if (breakBefore(hits, outgoing)) return;
  const text = await answer();
  for (const { fault } of hits) {
    if (fault.spec.kind === "delay") await waitUnlessRemoved(fault.spec.ms, fault.removed);
  }
  if (findHit(hits, "answer-lost") !== undefined) return void outgoing.socket?.resetAndDestroy();
  const isCutOff = findHit(hits, "malformed") !== undefined;
  const body = isCutOff ? text.slice(0, Math.floor(text.length / 2)) : text;
  outgoing.writeHead(200, { "content-type": "application/json" }).end(body);
}

/** Returns the first fault of a kind among the hits. */
function findHit<K extends ConnectionFaultSpec["kind"]>(
  hits: readonly Hit[],
  kind: K,
): { spec: Extract<ConnectionFaultSpec, { kind: K }>; removed: AbortSignal } | undefined {
  const isOfKind = (spec: ConnectionFaultSpec): spec is Extract<ConnectionFaultSpec, { kind: K }> =>
    spec.kind === kind;
  for (const { fault } of hits) {
    const { spec, removed } = fault;
    if (isOfKind(spec)) return { spec, removed };
  }
  return undefined;
}

/** Waits for some milliseconds, or until the fault is removed. */
async function waitUnlessRemoved(ms: number, removed: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal: removed, ref: false }).catch(() => {});
}

/** Matches the paths that faults can hit and captures the route's name. */
const operation = /^(?:\/v1)?\/(verify|settle|supported)(?:\?|$)/;

/**
 * Applies the facilitator's faults to requests as they reach the server. The service itself does not know about them: to
 * it, a lost answer looks like a broken connection.
 */
export function breakAnswers(server: Server, faults: ConnectionFaults): void {
  const listeners = server.listeners("request") as RequestListener[];
  server.removeAllListeners("request");
  server.on("request", (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const [, name] = faults.armed ? (operation.exec(incoming.url ?? "") ?? []) : [];
    const hits = name === undefined ? [] : faults.take([{ method: name, params: [] }]);
    if (breakBefore(hits, outgoing)) return;
    if (hits.length > 0) holdBack(hits, outgoing);
    for (const listener of listeners) listener.call(server, incoming, outgoing);
  });
}

/** Delays an answer from its first byte on, or resets the connection instead. */
function holdBack(hits: readonly Hit[], outgoing: ServerResponse): void {
  const isLost = findHit(hits, "answer-lost") !== undefined;
  let last: Promise<unknown> | undefined;

  async function waitForFaults(): Promise<void> {
    for (const { fault } of hits) {
      if (fault.spec.kind === "delay") await waitUnlessRemoved(fault.spec.ms, fault.removed);
    }
    if (isLost) outgoing.socket?.resetAndDestroy();
  }

  /** Wraps a response method so that its calls run in order after the faults; they are dropped if the answer is lost. */
  function later(method: (...args: never[]) => unknown) {
    return (...args: unknown[]) => {
      last = (last ?? waitForFaults()).then(() => isLost || Reflect.apply(method, outgoing, args));
    };
  }

  const [write, end] = [later(outgoing.write), later(outgoing.end)];
  outgoing.write = (...args: unknown[]) => {
    write(...args);
    return true;
  };
  outgoing.end = (...args: unknown[]) => {
    end(...args);
    return outgoing;
  };
}

/**
 * Returns the node's answers to the calls of a request, as modified by the faults of single calls. The first fault that
 * hits a call decides. `forward` sends a body to the node and returns the body of its answer.
 */
export async function answerCalls(
  { calls, isBatch }: Message,
  hits: readonly Hit[],
  node: LocalRpc,
  forward: (body: string) => Promise<string>,
): Promise<string> {
  const write = (entries: readonly object[]) => JSON.stringify(isBatch ? entries : entries[0]);
  const interceptions = await Promise.all(calls.map((call, index) => intercept(call, index, hits, node)));
  const sent = interceptions.flatMap(({ call }) => call ?? []);
  const given = sent.length === 0 ? [] : readAnswers(await forward(write(sent)), sent);
  const left = [...given];
  const answers: Answer[] = [];
  for (const { call, answer } of interceptions) {
    const own = call === undefined ? {} : left.shift();
    // Calls that the node did not answer stay unanswered.
    if (own !== undefined) answers.push(answer(own));
  }
  return write(answers);
}

async function intercept(
  call: Call,
  index: number,
  hits: readonly Hit[],
  node: LocalRpc,
): Promise<Interception> {
  for (const { fault, calls } of hits) {
    if (!calls.has(index)) continue;
    const { spec } = fault;
    switch (spec.kind) {
      case "error":
        return answerWith(call, { error: { code: spec.code, message: spec.message } });
      case "stale-head": {
        const head = readQuantity(await node.request("eth_blockNumber")) ?? 0n;
        const seen = head - BigInt(spec.blocks);
        return asSeenAt(seen > 0n ? seen : 0n, call);
      }
      case "receipt-of-another":
        // Other calls do not return a receipt.
        if (call.method !== "eth_getTransactionReceipt") break;
        return receiptOfAnother(node, call, spec.disguised ?? false);
    }
  }
  return { call, answer: (given) => given };
}

/** The effect of a fault on one call. */
type Interception = {
  /** The call to send to the node; undefined if it is answered without the node. */
  call?: Call;
  /** Derives the final answer from the node's. */
  answer(given: Answer): Answer;
};

/** Answers a call without asking the node. */
function answerWith({ id }: Call, answer: { result: unknown } | { error: unknown }): Interception {
  return { answer: () => ({ jsonrpc: "2.0", id, ...answer }) };
}

/** Sends a call to the node and changes its result. */
function alterResult(call: Call, alter: (result: unknown) => unknown): Interception {
  return {
    call,
    answer: (given) => ("result" in given ? { ...given, result: alter(given.result) } : given),
  };
}

/** How many of the first and of the newest blocks to search for another transaction. */
const searched = 24n;

/**
 * Answers with the receipt of another transaction; with `disguised`, under the requested hash. The result is null if no
 * other transaction is found.
 */
async function receiptOfAnother(node: LocalRpc, call: Call, disguised: boolean): Promise<Interception> {
  const [asked] = call.params;
  const other = await findOther(node, asked);
  const receipt = other === undefined ? null : await node.request("eth_getTransactionReceipt", other);
  const answered = disguised && receipt !== null ? { ...Object(receipt), transactionHash: asked } : receipt;
  return alterResult(call, () => answered);
}

/** Returns the hash of another transaction in the searched blocks, preferring newer blocks. */
async function findOther(node: LocalRpc, hash: unknown): Promise<unknown> {
  const head = readQuantity(await node.request("eth_blockNumber")) ?? 0n;
  const numbers = new Set<bigint>();
  for (let back = 0n; back < searched && back <= head; back++) numbers.add(head - back);
  for (let number = 1n; number <= searched && number <= head; number++) numbers.add(number);
  const blocks = await node.batch(
    [...numbers].map((number): LocalCall => ["eth_getBlockByNumber", `0x${number.toString(16)}`, false]),
  );
  return blocks.flatMap(transactionsOf).find((other) => other !== hash);
}

function transactionsOf(block: unknown): readonly unknown[] {
  const { transactions } = membersOf(block);
  return Array.isArray(transactions) ? transactions : [];
}

/** Block tags at or near the head. */
const tags: ReadonlySet<unknown> = new Set(["latest", "pending", "safe", "finalized"]);

/** Methods whose results name the block of a transaction. */
const inBlocks: ReadonlySet<string> = new Set(["eth_getTransactionReceipt", "eth_getTransactionByHash"]);

/**
 * Makes a node answer as if it had seen no block after `head`: calls at the newest block become calls at `head`, and
 * results from later blocks are removed. Transactions sent to it still go through.
 */
function asSeenAt(head: bigint, call: Call): Interception {
  const { method, params } = call;
  const hex = `0x${head.toString(16)}`;
  if (method === "eth_blockNumber") return answerWith(call, { result: hex });
  const [first] = params;
  if (method === "eth_getBlockByNumber" && isLater(first, head)) return answerWith(call, { result: null });
  if (inBlocks.has(method)) {
    return alterResult(call, (result) => (isLater(membersOf(result).blockNumber, head) ? null : result));
  }
  if (method === "eth_getLogs") {
    return alterResult(call, (logs) =>
      Array.isArray(logs) ? logs.filter((log) => !isLater(membersOf(log).blockNumber, head)) : logs,
    );
  }
  return {
    call: { ...call, params: params.map((param) => (tags.has(param) ? hex : param)) },
    answer: (given) => given,
  };
}

function isLater(number: unknown, head: bigint): boolean {
  const value = readQuantity(number);
  return value !== undefined && value > head;
}
