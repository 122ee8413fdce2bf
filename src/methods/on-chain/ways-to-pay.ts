import { readClaimedCodes } from "../../protocol/builder-code.ts";
import type { ServedNetwork } from "../../protocol/checks.ts";
import { createRequestParser, type RequestParser } from "../../protocol/requests.ts";
import { propertyOf } from "../../protocol/wire-values.ts";
import type { TakenMethod } from "../method.ts";
import { takenMethods } from "../taken-methods.ts";
import type { Settling, Usage } from "./settling.ts";
import { settlings } from "./table.ts";

/** The payment methods that a service accepts, by name: their off-chain and on-chain parts. */
export type WaysToPay = {
  readonly methods: readonly TakenMethod[];
  /** Parses requests for any of these methods. */
  readonly parse: RequestParser;
  /** Returns true if the method is known. The ledger may hold payments from a later version of the service. */
  knows(name: string): boolean;
  methodOf(name: string): TakenMethod;
  settlingOf(name: string): Settling;
  /** The gas usage of a plain payment that is settled alone, or recovered: the maximum over the network's methods. */
  usual(network: ServedNetwork): { settlement: Usage; recovery: Usage };
};

/** Creates the table. Earlier methods are the first to claim a payload. */
export function createWaysToPay(
  all: readonly [TakenMethod, ...TakenMethod[]],
  settlings: readonly Settling[],
): WaysToPay {
  const methodByName = new Map(all.map((method) => [method.name, method]));
  const settlingByName = new Map(settlings.map((settling) => [settling.method, settling]));
  const parse = createRequestParser(all);
  return {
    methods: all,
    parse(body, known) {
      const parsed = parse(body, known);
      if (!parsed.ok) return parsed;
      const codes = readClaimedCodes(propertyOf(body, "paymentPayload"), parsed.request.x402Version);
      return codes === undefined ? parsed : { ...parsed, request: { ...parsed.request, codes } };
    },
    knows: (name) => settlingByName.has(name),
    methodOf: (name) => found(methodByName.get(name), name),
    settlingOf: (name) => found(settlingByName.get(name), name),
    usual(network) {
      const used = all
        .filter((method) => method.extra(network) !== undefined)
        .flatMap(({ name }) => settlingByName.get(name) ?? []);
      return {
        settlement: most(used.map(({ usual }) => usual)),
        recovery: most(used.flatMap(({ recovery }) => recovery?.usual ?? [])),
      };
    },
  };
}

function most(usages: readonly Usage[]): Usage {
  const larger = (one: bigint, other: bigint) => (one > other ? one : other);
  return usages.reduce(
    (known, { gas, gasLimit, bytes }) => ({
      gas: larger(known.gas, gas),
      gasLimit: larger(known.gasLimit, gasLimit),
      bytes: Math.max(known.bytes, bytes),
    }),
    { gas: 0n, gasLimit: 0n, bytes: 0 },
  );
}

function found<T>(entry: T | undefined, name: string): T {
  // The ledger may hold payments from a later version of the service.
  if (entry === undefined) throw new Error(`this service does not know the payment method ${name}`);
  return entry;
}

/** All payment methods, including the scheme that web pages do not load. */
export const waysToPay = createWaysToPay(takenMethods, settlings);
