import fc from "fast-check";
import { expect, test } from "vitest";
import { readRevertData } from "./revert-data.ts";

const data = "0x08c379a0";

test.each([
  ["geth, reth, erigon, anvil", { code: 3, data }, data],
  ["anvil, without a reason", { code: 3, data: "0x" }, "0x"],
  ["a node that leaves empty data out", { code: 3, data: undefined }, "0x"],
  ["Nethermind and Besu", { code: -32000, data }, data],
  ["OpenEthereum", { code: -32015, data: `Reverted ${data}` }, data],
  ["OpenEthereum, without a reason", { code: -32015, data: "Reverted 0x" }, "0x"],
  ["Hardhat", { code: -32603, data: { message: "reverted", data } }, data],
  ["Ganache", { code: -32000, data: { hash: null, result: data, reason: "no" } }, data],
  ["a proxy that wraps its node's error", { code: -32603, data: { originalError: { code: 3, data } } }, data],
])("a revert as %s tells it", (_, error, revertData) => {
  expect(readRevertData({ message: "", ...error })).toBe(revertData);
});

test.each([
  ["a missing block", { code: -32000, message: "header not found", data: undefined }],
  ["a message that says otherwise", { code: -32000, message: "execution reverted", data: undefined }],
  ["out of gas, as anvil tells it", { code: -32603, message: "EVM error OutOfGas", data: undefined }],
  ["data that is no bytes", { code: -32000, message: "", data: "0x123" }],
  ["data of something else", { code: -32000, message: "", data: "try again in 3 s" }],
  ["a rate limit with data", { code: -32005, message: "", data: "0x12" }],
  ["an error without code", { code: undefined, message: "execution reverted", data }],
])("%s is no revert", (_, error) => {
  expect(readRevertData(error)).toBeUndefined();
});

test("never throws", () => {
  const code = fc.constantFrom(3, -32000, -32015, -32603, 0, undefined);
  fc.assert(
    fc.property(code, fc.anything({ maxDepth: 6 }), (code, data) => {
      expect(readRevertData({ code, message: "", data }) ?? "0x").toMatch(/^0x/);
    }),
  );
});
