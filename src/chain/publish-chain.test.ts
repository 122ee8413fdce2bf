import { expect, test } from "vitest";
import type { Hex } from "../protocol/hex.ts";
import { methodsAbout } from "./publish-chain.ts";
import { headCall } from "./rpc/calls.ts";

const [one, other]: readonly [Hex, Hex] = ["0x01", "0x02"];
const call = (method: string, about?: Hex) => ({ method, params: [], about });

test("what two payments ask in one HTTP request is told of each, and the newest block of both", () => {
  const questions = [
    [headCall, call("eth_call", one)],
    [headCall, call("eth_call", other), call("eth_maxPriorityFeePerGas")],
    [call("eth_getTransactionCount")],
  ];
  expect(methodsAbout(questions)).toEqual(
    new Map([
      [one, ["eth_getBlockByNumber", "eth_call"]],
      [other, ["eth_getBlockByNumber", "eth_call", "eth_maxPriorityFeePerGas"]],
    ]),
  );
});

test("of the receipts that are asked for together, each transaction is told its own", () => {
  const receipts = [one, other, one].map((hash) => call("eth_getTransactionReceipt", hash));
  expect(methodsAbout([receipts, [call("eth_call", other)]])).toEqual(
    new Map([
      [one, ["eth_getTransactionReceipt", "eth_getTransactionReceipt"]],
      [other, ["eth_getTransactionReceipt", "eth_call"]],
    ]),
  );
});

test("what is asked for no payment is told of none", () => {
  expect(methodsAbout([[headCall], [call("eth_getBalance")]])).toEqual(new Map());
});

test("payments that are asked for by the same methods share one list of them", () => {
  const third: Hex = "0x03";
  const [oneOf, otherOf, thirdOf] = [one, other, third].map((id) => [headCall, call("eth_call", id)]);
  const more = [call("eth_getBalance", one)];
  const methods = methodsAbout([oneOf ?? [], otherOf ?? [], more, thirdOf ?? []]);
  expect(methods.get(other)).toEqual(["eth_getBlockByNumber", "eth_call"]);
  expect(methods.get(third)).toEqual(["eth_getBlockByNumber", "eth_call"]);
  // What one of them is asked for besides is told of it alone.
  expect(methods.get(one)).toEqual(["eth_getBlockByNumber", "eth_call", "eth_getBalance"]);
  expect(methodsAbout([oneOf ?? [], otherOf ?? []])).toSatisfy(
    (shared: typeof methods) => shared.get(one) === shared.get(other),
  );
});
