import { describe, expect, test } from "vitest";
import { networkNames, networks } from "../../protocol/networks.ts";
import { belowMinimum, type Limits, refusedForCode, requirePayable, reserveByTier } from "./organizations.ts";

const limitsOf = (changes: Partial<Limits>): Limits => ({
  minimumAmount: null,
  dailyGasBudget: null,
  refusePayersWithCode: false,
  ...changes,
});

describe("the least amount", () => {
  test.each<[string, Limits | undefined, bigint, boolean]>([
    ["no limits at all", undefined, 0n, false],
    ["no minimum", limitsOf({ dailyGasBudget: 0n }), 0n, false],
    ["a minimum of nothing", limitsOf({ minimumAmount: 0n }), 0n, false],
    ["one below", limitsOf({ minimumAmount: 10_000n }), 9_999n, true],
    ["the minimum itself", limitsOf({ minimumAmount: 10_000n }), 10_000n, false],
    ["above what a double can tell apart", limitsOf({ minimumAmount: 2n ** 53n + 1n }), 2n ** 53n, true],
  ])("%s", (_, limits, value, refused) => {
    expect(belowMinimum(limits, value) !== undefined).toBe(refused);
  });

  test("is named to a payer who pays too little", () => {
    expect(belowMinimum(limitsOf({ minimumAmount: 10_000n }), 5n)?.message).toMatchInlineSnapshot(
      `"The amount of 5 is below the organization's minimum of 10000"`,
    );
  });
});

describe("payers with code", () => {
  const payer = `0x${"11".repeat(20)}` as const;
  const code = `0x${"22".repeat(32)}` as const;
  const refusing = limitsOf({ refusePayersWithCode: true });

  test.each([
    ["no limits at all", undefined, code, false],
    ["no such limit, and code that was not read", limitsOf({}), undefined, false],
    ["a plain account", refusing, null, false],
    ["code", refusing, code, true],
  ] as const)("%s", (_, limits, payerCode, refused) => {
    expect(refusedForCode(limits, payer, payerCode) !== undefined).toBe(refused);
  });

  test("are told to pay from a plain account", () => {
    expect(refusedForCode(refusing, payer, code)?.message).toMatchInlineSnapshot(
      `"The payer 0x1111111111111111111111111111111111111111 has code (a wallet, or EIP-7702), and this organization takes plain accounts only. Pay from a plain account"`,
    );
  });

  test("are not let through where their code was not read", () => {
    expect(() => refusedForCode(refusing, payer, undefined)).toThrow("was not read");
  });
});

const contract = "0x652026B65e32ffC7487F89D68D208977789a04d3";
const token = "0x60a3E35Cc302bFA44Cb288Bc5a4F316Fdb1adb42";
const wallet = "0x857b06519E91e3A54538791bDbb0E22373e36b66";
const reserved = reserveByTier({ mainnet: contract }, [{ network: "base", address: token, name: "EURC" }]);

test("a wallet is accepted in lower case, upper case, and with its checksum", () => {
  for (const network of networkNames) {
    requirePayable(wallet, network, reserved);
    requirePayable(wallet.toLowerCase(), network, reserved);
  }
});

describe("is refused as a recipient:", () => {
  test.each<[string, string, string]>([
    ["a mistyped wallet", "0x857b06519E91e3A54538791bDbb0E22373e36b67", "has a wrong checksum (EIP-55)"],
    ["what is no address", "vitalik.eth", "is not an address"],
    ["the zero address", `0x${"0".repeat(40)}`, "is the zero address"],
    [
      "the facilitator contract",
      contract.toLowerCase(),
      "is the facilitator contract on base, and not a wallet",
    ],
    ["USDC", networks.base.usdc.address, "is the token USDC on base, and not a wallet"],
    ["a further token", token, 'is the token "EURC" on base, and not a wallet'],
  ])("%s", (_name, recipient, problem) => {
    expect(() => requirePayable(recipient, "base", reserved)).toThrow(problem);
  });
});

test("a contract of one network may be a wallet on another", () => {
  requirePayable(contract, "base-sepolia", reserved);
  requirePayable(token, "polygon", reserved);
});
