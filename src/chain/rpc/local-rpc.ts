import { createBoundedMap } from "../../util/cache.ts";
import { KitError } from "../../util/errors.ts";
import { createKeepAlivePost, type Post } from "../../util/http-client.ts";
import { readBatch, writeBatch } from "./rpc.ts";

/** One JSON-RPC call: the method and its parameters. */
export type LocalCall = readonly [method: string, ...params: readonly unknown[]];

/** The node was reached and refused a call. */
export class RpcRefusal extends KitError {
  override readonly name = "RpcRefusal";
  override readonly code = "rpc-refused";
  readonly method: string;
  readonly rpcCode: number | undefined;

  constructor(method: string, rpcCode: number | undefined, message: string) {
    super(`The node refused ${method}: ${message}`);
    this.method = method;
    this.rpcCode = rpcCode;
  }
}

/** The node was not reached, or did not reply with JSON-RPC. */
export class RpcUnreachable extends KitError {
  override readonly name = "RpcUnreachable";
  override readonly code = "unreachable";
}

/** JSON-RPC to one local node. Unlike the service's client it retries nothing and hides nothing. */
export type LocalRpc = {
  /** Returns the unparsed result of one call. Throws {@link RpcRefusal}, {@link RpcUnreachable}. */
  request(method: string, ...params: readonly unknown[]): Promise<unknown>;
  /**
   * Returns the results of several calls in one HTTP request, in their order; throws the first error among them. Anvil
   * starts the calls in order without waiting for each, so calls that depend on each other belong in separate batches.
   */
  batch(calls: readonly LocalCall[]): Promise<readonly unknown[]>;
};

const usualTimeoutMs = 60_000;

/** Connections by URL, shared by all clients: a client for a single call leaves no connection of its own open. */
const connections = createBoundedMap<string, Post>(64);

function connect(url: string): Post {
  const known = connections.get(url);
  if (known !== undefined) return known;
  const post = createKeepAlivePost(new URL(url), {
    timeoutMs: usualTimeoutMs,
    maxResponseBytes: 64 * 1024 * 1024,
    idleMs: 5_000,
    // A node resets some connections if thousands are opened at once.
    maxConnections: 256,
  });
  connections.set(url, post);
  return post;
}

/** Creates a JSON-RPC client for a node on this machine. Its idle connections do not keep the process alive. */
export function createLocalRpc(url: string, timeoutMs = usualTimeoutMs): LocalRpc {
  const post = connect(url);

  const batch = async (calls: readonly LocalCall[]): Promise<readonly unknown[]> => {
    if (calls.length === 0) return [];
    const asked = calls.map(([method, ...params]) => ({ method, params }));
    const { body, firstId } = writeBatch(asked);
    let answers: ReturnType<typeof readBatch>;
    try {
      answers = readBatch(await post(body, timeoutMs), firstId, asked);
    } catch (cause) {
      throw new RpcUnreachable(`The node at ${url} gave no answer`, { cause });
    }
    return asked.map((call) => {
      const answer = answers.get(call);
      if (answer?.error !== undefined) {
        throw new RpcRefusal(call.method, answer.error.code, answer.error.message);
      }
      return answer?.result;
    });
  };

  return {
    batch,
    async request(method, ...params) {
      const [result] = await batch([[method, ...params]]);
      return result;
    },
  };
}
