import { describe, expect, test } from "vitest";
import { networkNames, networks } from "../../protocol/networks.ts";
import { requirePayable, reserveByTier } from "./recipient.ts";

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
