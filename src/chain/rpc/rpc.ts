import type { Hex } from "../../protocol/hex.ts";
import type { RpcStatus } from "./endpoint-state.ts";

/** One JSON-RPC call. The same object asked by several callers at once goes out once. */
export type RpcCall = {
  readonly method: string;
  readonly params: readonly unknown[];
  /**
   * The id of the settlement or the hash of the transaction that it is asked for, which observers are told and nodes are
   * not; undefined where it is for whatever is asked with it.
   */
  readonly about?: Hex | undefined;
};

/** The calls of one `ask` or `send`: what several callers ask at the same time shares an HTTP request. */
export type Question = readonly RpcCall[];

/** What a node says instead of a result. `message` is for people; nothing is decided by it. */
export type RpcError = { code: number | undefined; message: string; data: unknown };

/** What a node answered to one call. */
export type RpcAnswer =
  | { readonly result: unknown; readonly error?: undefined }
  | { readonly result?: undefined; readonly error: RpcError };

/** The same, with the label of the endpoint that gave it: whose word it is. */
export type EndpointAnswer = RpcAnswer & { readonly endpoint: string };

/** One endpoint of a network: what it is asked is answered by it, or by none. */
export type RpcEndpoint = {
  /** {@link EndpointStatus.label} */
  readonly endpoint: string;
  /**
   * Reads, as {@link Rpc.ask} does.
   *
   * @throws UndeterminedError also, and at once, while the endpoint is left alone after a failure.
   */
  ask(calls: readonly RpcCall[]): Promise<readonly EndpointAnswer[]>;
};

/**
 * A node, or several that stand in for one another. The calls of one `ask` or `send` always go to the same node and
 * in one HTTP request, as long as they fit in a batch: what they say of the chain belongs together.
 */
export type Rpc = {
  /**
   * Reads. May be repeated, at another node too, and share a request with other callers. Gives the answers in the
   * order of the calls; an error that a node gives to a single call is an answer here. A caller that cannot use
   * such an answer asks again and says how many times it was `refused`: from the second time on, other nodes are
   * asked first.
   *
   * @throws UndeterminedError when there was no answer, or none that can be understood.
   */
  ask(calls: readonly RpcCall[], refused?: number): Promise<readonly EndpointAnswer[]>;
  /**
   * Writes, in the given order. Resolves when a node has answered, whatever it said of the single calls; where one
   * does not, the next gets the very same calls. With `everywhere` all nodes that are well get them, at once: for
   * what was sent before, and came to nothing.
   *
   * @throws UndeterminedError when none answered: the calls may or may not have arrived.
   */
  send(calls: readonly RpcCall[], options?: { everywhere?: boolean }): Promise<void>;
  /** Each endpoint by itself, those first that {@link ask} prefers at the moment; always as many as are configured. */
  endpoints(): readonly RpcEndpoint[];
  /** How the nodes are, without asking them. */
  status(): RpcStatus;
  /** How they are now, each of them having been asked. Never throws: what is wrong with one is in its status. */
  probe(): Promise<RpcStatus>;
  /** Ends what is under way, undetermined, and all that goes on in the background. Nothing can be asked any more. */
  close(): void;
};
