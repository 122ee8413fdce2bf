import { z } from "zod";
import type { FaultField, FaultForm } from "../../observe/studio/harness-views.ts";
import type { Hex } from "../../protocol/hex.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import { anything, oneOf, requireGiven, type WantedOptions } from "../../util/given.ts";
import {
  type CallMatch,
  type ChainFaultSpec,
  type ConnectionFaultSpec,
  examples,
  type FaultSpec,
  facilitatorPlace,
  facilitatorRoutes,
  faultTable,
  lasts,
  matchNames,
  readFaultSpec,
} from "./fault-spec.ts";

/** A fault that is set. Disposing of it ends it. */
export type Fault = AsyncDisposable & {
  readonly id: string;
  /** Ends the fault; requests that it has kept waiting go on. Can be called again. */
  remove(): Promise<void>;
};

/** The actions on the JSON-RPC between the service and a node. */
export type ConnectionFaultSetter = {
  /** The node gets the request, and the connection is reset in the place of its answer. */
  answerLost(): Promise<Fault>;
  /** The node gets the request at once, and the service its answer `ms` milliseconds late. */
  delay(ms: number): Promise<Fault>;
  /** HTTP 429 with a Retry-After of one second, unless another is given. The node gets nothing. */
  rateLimited(options?: { retryAfterSeconds?: number }): Promise<Fault>;
  /** The connection is reset. The node gets nothing. */
  reset(): Promise<Fault>;
  /** The call is answered with a JSON-RPC error. The node does not get it. */
  error(code: number, message: string): Promise<Fault>;
  /** Something that is not JSON: an HTML page, which comes without the node; or, `cut-off`, the first half of the node's answer. */
  malformed(form?: "html" | "cut-off"): Promise<Fault>;
  /** Answers calls about the newest block as they were that many blocks ago; later receipts are missing. */
  staleHead(blocks: number): Promise<Fault>;
  /** HTTP with this status, from 400 to 599. The node gets nothing. */
  status(status: number): Promise<Fault>;
  /** No answer, ever, until the fault is removed: then the connection is reset. The node gets nothing. */
  hang(): Promise<Fault>;
  /**
   * `eth_getTransactionReceipt` gives the receipt of another transaction; `disguised`, under the hash that was asked
   * for. There is none where the chain has no other transaction in its first and its newest 24 blocks.
   */
  receiptOfAnother(options?: { disguised?: boolean }): Promise<Fault>;
};

/** Which requests to the facilitator a fault hits. */
export type FacilitatorMatch = Pick<CallMatch, "nth" | "times"> & {
  operation?: "verify" | "settle" | "supported";
};

/** The actions on the HTTP between a shop and the facilitator. With `answerLost` and `delay` the facilitator does its work. */
export type FacilitatorFaultSetter = Pick<
  ConnectionFaultSetter,
  "answerLost" | "delay" | "rateLimited" | "reset" | "status" | "hang"
>;

export type ChainFaultSetter = {
  /** Nothing is mined until the fault is removed. */
  holdBlocks(): Promise<Fault>;
  /** Takes a transaction that waits to be mined, or all of them, out of the node. */
  drop(hash?: Hex): Promise<void>;
  /** Replaces the newest `depth` blocks, from 1 to 63, by empty ones. Their transactions are gone. */
  reorg(depth: number): Promise<void>;
  /**
   * Sets the base fee, in wei per gas, from the next block on, which is mined at once unless blocks are held. Blocks come
   * once a second meanwhile, each with that fee; with a seed they come with the transactions, and the fee falls by up to an
   * eighth with each. Of several the one set last counts. Removed, it is what it was.
   */
  baseFee(wei: bigint): Promise<Fault>;
  /** Takes the gas money of the operator; removed, it has again what it had. */
  emptyOperator(): Promise<Fault>;
};

/** Trouble with chains, and with the way to them, for a service that has to cope. */
export type Faults<N extends NetworkName = NetworkName> = {
  /**
   * The connection between the service and the node of a network, or only some calls on it. Tests and other clients
   * of the node are not touched.
   *
   * @throws ConfigurationError (from each fault) with everything that is wrong with its arguments
   *
   * @example
   * await harness.faults.on("base", { method: "eth_sendRawTransaction*", nth: 2 }).answerLost();
   */
  on(network: N, match?: CallMatch): ConnectionFaultSetter;
  /**
   * The way between a shop and the facilitator: for all of its callers, `harness.pay` among them.
   *
   * @param match `operation`: at which route; by default at each. `nth` and `times` count requests, as in {@link CallMatch}.
   *
   * @example
   * await harness.faults.onFacilitator({ operation: "settle", nth: 1 }).answerLost();
   */
  onFacilitator(match?: FacilitatorMatch): FacilitatorFaultSetter;
  /**
   * A chain itself, for all of its clients.
   *
   * @example
   * const held = await harness.faults.chain("base").holdBlocks();
   * // … settle, and see that nothing is mined …
   * await held.remove();
   */
  chain(network: N): ChainFaultSetter;
  /** The active faults, oldest first, with the number of their hits. */
  list(): Promise<readonly FaultReport[]>;
  clear(): Promise<void>;
};

/** Which calls of a connection may be named; what each may be is read with the fault. */
const calls: WantedOptions = { method: anything, nth: anything, times: anything };
const requests: WantedOptions = { operation: oneOf(facilitatorRoutes), nth: anything, times: anything };

/** The faults of a board, as methods. */
export function createFaultSetters<N extends NetworkName>(board: FaultBoard): Faults<N> {
  async function set(spec: FaultSpec): Promise<Fault> {
    const { id } = await board.add(spec);
    const remove = async () => void (await board.remove(id));
    return { id, remove, [Symbol.asyncDispose]: remove };
  }
  /** `check` refuses what the calls to be hit are given as. */
  function onConnection(network: NetworkName, match: CallMatch, check: () => void): ConnectionFaultSetter {
    async function setOn(spec: Unplaced<ConnectionFaultSpec>, wanted?: WantedOptions, given: object = {}) {
      check();
      if (wanted !== undefined) requireGiven(given, wanted);
      return set({ network, ...match, ...spec, ...given });
    }
    return {
      answerLost: () => setOn({ kind: "answer-lost" }),
      delay: (ms) => setOn({ kind: "delay", ms }),
      rateLimited: (options) => setOn({ kind: "rate-limited" }, { retryAfterSeconds: anything }, options),
      reset: () => setOn({ kind: "reset" }),
      error: (code, message) => setOn({ kind: "error", code, message }),
      malformed: (form) => setOn({ kind: "malformed", form }),
      staleHead: (blocks) => setOn({ kind: "stale-head", blocks }),
      status: (status) => setOn({ kind: "status", status }),
      hang: () => setOn({ kind: "hang" }),
      receiptOfAnother: (options) => setOn({ kind: "receipt-of-another" }, { disguised: anything }, options),
    };
  }
  return {
    on: (network, match = {}) => onConnection(network, match, () => requireGiven(match, calls)),
    onFacilitator(match = {}) {
      const { operation: method, ...count }: FacilitatorMatch = Object(match);
      return onConnection(facilitatorPlace, { ...count, ...(method !== undefined && { method }) }, () =>
        requireGiven(match, requests),
      );
    },
    chain(network) {
      const setOn = (spec: Unplaced<ChainFaultSpec>) => set({ network, ...spec });
      return {
        holdBlocks: () => setOn({ kind: "hold-blocks" }),
        drop: async (hash) => void (await setOn({ kind: "drop", hash })),
        reorg: async (depth) => void (await setOn({ kind: "reorg", depth })),
        baseFee: (wei) => setOn({ kind: "base-fee", wei: `${wei}` }),
        emptyOperator: () => setOn({ kind: "empty-operator" }),
      };
    },
    list: () => board.list(),
    clear: () => board.clear(),
  };
}

/** A spec without its network and its calls. */
type Unplaced<Spec> = Spec extends unknown ? Omit<Spec, "network" | keyof CallMatch> : never;

/**
 * A fault, how often it has hit, and the id by which it is removed. One of a chain has hit when it was set, and with each
 * request of the service that it concerns.
 */
export type FaultReport = FaultSpec & {
  id: string;
  fired: number;
  /** Where it has hit as often as it was to, and will not again. */
  usedUp?: true;
};

/** The faults of a running harness, as data: what its API, its control routes and the command line share. */
export type FaultBoard = {
  /**
   * Sets a fault. What happens at once and is over then, as a reorganization, is not listed.
   *
   * @throws ConfigurationError with everything that is wrong with the spec.
   */
  add(spec: unknown): Promise<FaultReport>;
  list(): Promise<readonly FaultReport[]>;
  /** Ends a fault; whether there was one. Requests that it has kept waiting go on. */
  remove(id: string): Promise<boolean>;
  /** Ends all of them, the last one first. */
  clear(): Promise<void>;
};

const numbered = z.looseObject({ id: z.string(), fired: z.int(), usedUp: z.literal(true).optional() });

/** Reads the report of a fault from another process. Throws what is wrong with it. */
export function readFaultReport(raw: unknown): FaultReport {
  const { id, fired, usedUp, ...spec } = numbered.parse(raw);
  // The other process knows its networks.
  const names = typeof spec.network === "string" ? [spec.network] : [];
  return { ...readFaultSpec(spec, names), id, fired, ...(usedUp && { usedUp }) };
}

/** The JSON Schema of a field. */
const property = z.object({
  type: z.enum(["integer", "string", "boolean"]),
  description: z.string(),
  minimum: z.number().nullable().default(null),
  maximum: z.number().nullable().default(null),
  enum: z.array(z.string()).default([]),
});

const document = z.object({
  description: z.string(),
  properties: z.record(z.string(), z.unknown()),
  required: z.array(z.string()),
});

/** Every kind of fault with its fields, from the table by which faults are read. */
export function describeFaults(): FaultForm {
  const kinds = faultTable.map(({ kind, schema, places }) => {
    const { description, properties, required } = document.parse(z.toJSONSchema(schema, { io: "input" }));
    const fields = Object.entries(properties)
      .filter(([name]) => name !== "network" && name !== "kind")
      .map(([name, raw]): FaultField => {
        const { type, description: means, minimum, maximum, enum: choices } = property.parse(raw);
        return {
          name,
          means,
          type,
          choices,
          least: minimum,
          most: maximum,
          needed: required.includes(name),
          isMatch: matchNames.has(name),
          example: examples[name] ?? "",
        };
      });
    return { kind, means: description, places, lasts: lasts(kind), fields };
  });
  return { kinds, facilitatorRoutes };
}

/** The meaning of a field, after the kinds that have it: of all that can be matched, after none. */
export function describeField(name: string): string {
  const { kinds } = describeFaults();
  const having = kinds.flatMap(({ kind, fields }) =>
    fields.filter((field) => field.name === name).map(({ means, isMatch }) => ({ kind, means, isMatch })),
  );
  const [first] = having;
  if (first === undefined) return "";
  return first.isMatch ? first.means : `${having.map(({ kind }) => kind).join(", ")}: ${first.means}`;
}
