import fc from "fast-check";
import { decodeErrorResult, encodeErrorResult } from "viem/utils";
import { expect, test } from "vitest";
import { x402FacilitatorAbi } from "../contracts/x402Facilitator.ts";
import { type Hex, toHex } from "../protocol/hex.ts";
import { decodeRevert, describeRevert, readRevertData } from "./revert.ts";

const errors = x402FacilitatorAbi.filter((item) => item.type === "error");
const uint = (bits: number) => fc.bigInt({ min: 0n, max: 2n ** BigInt(bits) - 1n });
const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length }).map(toHex);

/** Values of the types that errors of the contract have. */
const values: Record<string, fc.Arbitrary<unknown>> = {
  address: bytes(20),
  bytes32: bytes(32),
  bytes: fc.uint8Array({ maxLength: 100 }).map(toHex),
  uint8: uint(8).map(Number),
  uint48: uint(48).map(Number),
  uint256: uint(256),
};

test.each(errors.map((error) => [error.name, error] as const))(
  "%s is decoded as viem decodes it",
  (_, error) => {
    const types = error.inputs.map(({ type }) => values[type] ?? fc.constant(`no values for ${type}`));
    fc.assert(
      fc.property(fc.tuple(...types), (args) => {
        const data = encodeErrorResult({ abi: x402FacilitatorAbi, errorName: error.name, args } as never);
        const decoded = decodeErrorResult({ abi: x402FacilitatorAbi, data });
        expect(decodeRevert(data)).toEqual({
          kind: "custom",
          name: decoded.errorName,
          args: (decoded.args ?? []).map(comparable),
        });
      }),
      { numRuns: 30 },
    );
  },
);

/** viem gives addresses in mixed case and small integers as numbers. */
function comparable(value: unknown): unknown {
  if (typeof value === "string") return value.toLowerCase();
  return typeof value === "number" ? BigInt(value) : value;
}

test("USDC's reasons are told as they are", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (message) => {
      const data = encodeErrorResult({
        abi: [{ type: "error", name: "Error", inputs: [{ type: "string" }] }],
        args: [message],
      });
      expect(decodeRevert(data)).toEqual({ kind: "error", message });
    }),
  );
});

test("a reason that the contract has cut is told as far as it goes", () => {
  const message = "x".repeat(400);
  const data = encodeErrorResult({
    abi: [{ type: "error", name: "Error", inputs: [{ type: "string" }] }],
    args: [message],
  });
  expect(decodeRevert(`0x${data.slice(2, 2 + 2 * 256)}`)).toEqual({
    kind: "error",
    message: "x".repeat(188),
  });
});

test("a panic is told by its code", () => {
  expect(decodeRevert(`0x4e487b71${"11".padStart(64, "0")}`)).toEqual({ kind: "panic", code: 0x11n });
});

test.each<Hex>(["0x", "0x08c379a0", "0x12345678", "0x4e487b71", `0x08c379a0${"f".repeat(64)}`, "0xzz"])(
  "%s is unknown",
  (data) => {
    expect(decodeRevert(data)).toEqual({ kind: "unknown", data });
  },
);

test("never throws", () => {
  const selectors = errors.map((error) =>
    encodeErrorResult({
      abi: [{ ...error, inputs: [] }],
      errorName: error.name,
    } as never).slice(0, 10),
  );
  // Words that look like offsets and lengths get further than noise does.
  const word = fc.oneof(
    bytes(32).map((hex) => hex.slice(2)),
    fc.nat(300).map((n) => n.toString(16).padStart(64, "0")),
  );
  const data = fc
    .tuple(
      fc.constantFrom("0x08c379a0", "0x4e487b71", ...selectors),
      fc.array(word, { maxLength: 6 }),
      fc.nat(300),
    )
    .map(([selector, words, cut]): Hex => `0x${`${selector.slice(2)}${words.join("")}`.slice(0, cut * 2)}`);
  fc.assert(
    fc.property(
      fc.oneof(
        data,
        fc.string().map((text): Hex => `0x${text}`),
      ),
      (data) => {
        expect(typeof describeRevert(decodeRevert(data))).toBe("string");
      },
    ),
    { numRuns: 3_000 },
  );
});

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

test("whatever the words are, reading them never throws", () => {
  const code = fc.constantFrom(3, -32000, -32015, -32603, 0, undefined);
  fc.assert(
    fc.property(code, fc.anything({ maxDepth: 6 }), (code, data) => {
      expect(readRevertData({ code, message: "", data }) ?? "0x").toMatch(/^0x/);
    }),
  );
});
