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

/** An active fault. Disposing of it removes it. */
export type Fault = AsyncDisposable & {
  readonly id: string;
  /** Ends the fault; requests that it holds back continue. Can be called again. */
  remove(): Promise<void>;
};

/** Sets faults on the JSON-RPC between the service and a node. */
export type ConnectionFaultSetter = {
  /** The node gets the request, but the connection is reset instead of returning its answer. */
  answerLost(): Promise<Fault>;
  /** The node gets the request immediately; the service gets the answer `ms` milliseconds late. */
  delay(ms: number): Promise<Fault>;
  /** Answers HTTP 429 with a Retry-After of one second by default. The node gets nothing. */
  rateLimited(options?: { retryAfterSeconds?: number }): Promise<Fault>;
  /** The connection is reset. The node gets nothing. */
  reset(): Promise<Fault>;
  /** Answers the call with a JSON-RPC error. The node does not get it. */
  error(code: number, message: string): Promise<Fault>;
  /** Answers with invalid JSON: an HTML page, without asking the node, or (`cut-off`) the first half of the node's answer. */
  malformed(form?: "html" | "cut-off"): Promise<Fault>;
  /** Answers calls about the newest block as of that many blocks ago; later receipts are missing. */
  staleHead(blocks: number): Promise<Fault>;
  /** Answers with this HTTP status, from 400 to 599. The node gets nothing. */
  status(status: number): Promise<Fault>;
  /** Never answers. When the fault is removed, the connection is reset. The node gets nothing. */
  hang(): Promise<Fault>;
  /**
   * Answers `eth_getTransactionReceipt` with the receipt of another transaction; with `disguised`, under the requested
   * hash. Answers null if there is no other transaction in the chain's first 24 and newest 24 blocks.
   */
  receiptOfAnother(options?: { disguised?: boolean }): Promise<Fault>;
};

/** Selects the requests to the facilitator that a fault hits. */
export type FacilitatorMatch = Pick<CallMatch, "nth" | "times"> & {
  operation?: "verify" | "settle" | "supported";
};

/** Sets faults on the HTTP between shops and the facilitator. With `answerLost` and `delay`, the request is still processed. */
export type FacilitatorFaultSetter = Pick<
  ConnectionFaultSetter,
  "answerLost" | "delay" | "rateLimited" | "reset" | "status" | "hang"
>;

export type ChainFaultSetter = {
  /** Nothing is mined until the fault is removed. */
  holdBlocks(): Promise<Fault>;
  /** Removes a pending transaction, or all of them, from the node's pool. */
  drop(hash?: Hex): Promise<void>;
  /** Replaces the newest `depth` blocks (1 to 63) with empty ones. Their transactions are gone. */
  reorg(depth: number): Promise<void>;
  /**
   * Sets the base fee, in wei per gas, from the next block on. That block is mined immediately unless blocks are held.
   * Meanwhile a block with that fee is mined every second. With a seed, blocks are mined only with transactions, and each
   * lowers the fee by up to an eighth. The latest fault of this kind wins; removing the last one restores the old fee.
   */
  baseFee(wei: bigint): Promise<Fault>;
  /** Sets the operator's gas money to zero; removing the fault restores it. */
  emptyOperator(): Promise<Fault>;
};

/** Injects failures into the chains and the connections around the service. */
export type Faults<N extends NetworkName = NetworkName> = {
  /**
   * Breaks the connection between the service and the node of a network, or only some calls on it. Tests and other
   * clients of the node are not affected.
   *
   * @throws ConfigurationError (from each fault) listing everything that is wrong with its arguments
   *
   * @example
   * await harness.faults.on("base", { method: "eth_sendRawTransaction*", nth: 2 }).answerLost();
   */
  on(network: N, match?: CallMatch): ConnectionFaultSetter;
  /**
   * Breaks the connection between the facilitator and its callers, including `harness.pay`.
   *
   * @param match `operation`: the route; all by default. `nth` and `times` count requests, as in {@link CallMatch}.
   *
   * @example
   * await harness.faults.onFacilitator({ operation: "settle", nth: 1 }).answerLost();
   */
  onFacilitator(match?: FacilitatorMatch): FacilitatorFaultSetter;
  /**
   * Sets faults on a chain itself; they affect all of its clients.
   *
   * @example
   * const held = await harness.faults.chain("base").holdBlocks();
   * // … settle, and see that nothing is mined …
   * await held.remove();
   */
  chain(network: N): ChainFaultSetter;
  /** Returns the active faults with their number of hits, oldest first. */
  list(): Promise<readonly FaultReport[]>;
  clear(): Promise<void>;
};

/** The fields of a match. Those marked `anything` are validated together with the fault. */
const calls: WantedOptions = { method: anything, nth: anything, times: anything };
const requests: WantedOptions = { operation: oneOf(facilitatorRoutes), nth: anything, times: anything };

/** Wraps a fault board in typed methods. */
export function createFaultSetters<N extends NetworkName>(board: FaultBoard): Faults<N> {
  async function set(spec: FaultSpec): Promise<Fault> {
    const { id } = await board.add(spec);
    const remove = async () => void (await board.remove(id));
    return { id, remove, [Symbol.asyncDispose]: remove };
  }
  /** `check` throws if the match is invalid. */
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

/** A spec without its network and match fields. */
type Unplaced<Spec> = Spec extends unknown ? Omit<Spec, "network" | keyof CallMatch> : never;

/**
 * A fault with the number of its hits and the id to remove it by. A chain fault counts one hit when it is set, and one for
 * each request of the service that it affects.
 */
export type FaultReport = FaultSpec & {
  id: string;
  fired: number;
  /** Set if it has hit as often as requested and will not hit again. */
  usedUp?: true;
};

/** The faults of a running harness, as data. Shared by its API, the control routes and the command line. */
export type FaultBoard = {
  /**
   * Sets a fault. Momentary faults, such as a reorganization, are not listed.
   *
   * @throws ConfigurationError listing everything that is wrong with the spec.
   */
  add(spec: unknown): Promise<FaultReport>;
  list(): Promise<readonly FaultReport[]>;
  /** Ends a fault; returns false if there is none with this id. Requests that it holds back continue. */
  remove(id: string): Promise<boolean>;
  /** Ends all faults, newest first. */
  clear(): Promise<void>;
};

const numbered = z.looseObject({ id: z.string(), fired: z.int(), usedUp: z.literal(true).optional() });

/** Reads a fault report from another process. Throws if it is malformed. */
export function readFaultReport(raw: unknown): FaultReport {
  const { id, fired, usedUp, ...spec } = numbered.parse(raw);
  // Accept any network name: only the other process knows its networks.
  const names = typeof spec.network === "string" ? [spec.network] : [];
  return { ...readFaultSpec(spec, names), id, fired, ...(usedUp && { usedUp }) };
}

/** The JSON Schema of a fault's field. */
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

/** Describes every kind of fault with its fields, generated from the fault table. */
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

/** Describes a field, prefixed with the kinds that have it; without a prefix for match fields. Empty if unknown. */
export function describeField(name: string): string {
  const { kinds } = describeFaults();
  const having = kinds.flatMap(({ kind, fields }) =>
    fields.filter((field) => field.name === name).map(({ means, isMatch }) => ({ kind, means, isMatch })),
  );
  const [first] = having;
  if (first === undefined) return "";
  return first.isMatch ? first.means : `${having.map(({ kind }) => kind).join(", ")}: ${first.means}`;
}
