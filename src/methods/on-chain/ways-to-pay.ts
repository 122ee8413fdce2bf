import { createRequestParser, type RequestParser } from "../../protocol/requests.ts";
import { exactEip3009Settling } from "../exact-eip3009/on-chain/eip3009-settling.ts";
import type { Method } from "../method.ts";
import { methods } from "../methods.ts";
import { exactPermit2Settling, uptoPermit2Settling } from "../permit2/on-chain/permit2-settling.ts";
import type { Settling } from "./settling.ts";

/** The ways to pay that a service takes, each by its name: what it signs, and how it moves money. */
export type WaysToPay = {
  readonly methods: readonly Method[];
  /** Reads requests that are paid in any of these ways. */
  readonly parse: RequestParser;
  /** Whether payments of that name are known; the ledger may hold some of a later version of the service. */
  knows(name: string): boolean;
  methodOf(name: string): Method;
  settlingOf(name: string): Settling;
  /** What a payment uses that is settled alone: the most of any way. */
  readonly usual: Settling["usual"];
};

/** Makes the table; a payload that none of the methods owns is read, and refused, as one of the last. */
export function createWaysToPay(
  all: readonly [Method, ...Method[]],
  settlings: readonly Settling[],
): WaysToPay {
  const methodByName = new Map(all.map((method) => [method.name, method]));
  const settlingByName = new Map(settlings.map((settling) => [settling.method, settling]));
  return {
    methods: all,
    parse: createRequestParser(all),
    knows: (name) => settlingByName.has(name),
    methodOf: (name) => found(methodByName.get(name), name),
    settlingOf: (name) => found(settlingByName.get(name), name),
    usual: settlings
      .map(({ usual }) => usual)
      .reduce((most, usual) => (usual.gas > most.gas ? usual : most), { gas: 0n, bytes: 0 }),
  };
}

function found<T>(entry: T | undefined, name: string): T {
  // The ledger may hold payments of a later version of the service.
  if (entry === undefined) throw new Error(`this service does not know the way to pay ${name}`);
  return entry;
}

/** All of them. */
export const waysToPay = createWaysToPay(methods, [
  exactEip3009Settling,
  exactPermit2Settling,
  uptoPermit2Settling,
]);
