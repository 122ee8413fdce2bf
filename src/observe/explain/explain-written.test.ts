import { expect, test } from "vitest";
import { builtInNetworks, networks } from "../../protocol/networks.ts";
import { faults } from "../../protocol/wire-values.ts";
import { networkMeant, rewrite, type Written } from "./explain-written.ts";

const wallet = "0x857b06519E91e3A54538791bDbb0E22373e36b66";
const key = "12".repeat(32);

const written = (member: string, value: unknown, problem: string): Written => ({
  at: `paymentRequirements.${member}`,
  value,
  problem,
  version: 2,
  beside: {},
  network: networks.base,
});

test.each<[string, unknown, string, RegExp]>([
  ["payTo", ` ${wallet}`, faults.address, /the space around/],
  ["payTo", `'${wallet}'\r\n`, faults.address, /the quotes and line break around/],
  ["asset", "usd coin", faults.address, /address of the token on base/],
  ["amount", "010000", faults.decimal, /"10000".*leading zeros/],
  ["amount", "10000n", faults.decimal, /"10000".*bigint/],
  ["amount", "1,000,000", faults.decimal, /"1000000".*separators/],
  ["amount", "1,50", faults.decimal, /^$/],
  ["amount", "1e30", faults.decimal, /^$/],
  ["amount", 0.01, faults.digits, /^$/],
  ["amount", "2030-01-01", faults.decimal, /^$/],
  ["amount", `0x${"1".repeat(40)}`, faults.decimal, /^$/],
  ["authorization.validBefore", "1.5", faults.decimal, /^$/],
  ["authorization.validBefore", "2030-01-01", faults.decimal, /"1893456000"/],
  ["payTo", wallet.slice(0, -1), faults.address, /^$/],
  ["payTo", "0xZ57b06519E91e3A54538791bDbb0E22373e36b66", faults.address, /^$/],
  ["payTo", "USDC", faults.address, /^$/],
  ["asset", "DAI", faults.address, /^$/],
  ["authorization.nonce", "0x12", faults.bytes32, /^$/],
])("of %s %j it is said how it is written, and nothing that is not in it", (member, value, problem, fix) => {
  expect(rewrite(written(member, value, problem))?.fix ?? "").toMatch(fix);
});

test("what may be a private key is not repeated", () => {
  for (const text of [key, `0x${key}`, `"0x${key}"`]) {
    const found = rewrite(written("payTo", text, faults.address));
    expect(found?.fix).toMatch(/private key/);
    expect(JSON.stringify(found)).not.toContain("1212");
  }
});

test.each([
  ["Base", 1, "base"],
  ["base mainnet", 2, "eip155:8453"],
  ["base_sepolia", 1, "base-sepolia"],
  ["bsae", 1, "base"],
  [84_532, 1, "base-sepolia"],
  ["8453", 2, "eip155:8453"],
  ["mainnet", 1, undefined],
  ["solana", 1, undefined],
  ["ethereum", 1, undefined],
  ["eip155:1", 2, undefined],
] as const)("by the network %j of version %i, %s is meant", (value, version, meant) => {
  expect(networkMeant(value, version, builtInNetworks)).toBe(meant);
});
