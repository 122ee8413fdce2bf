import { readFile } from "node:fs/promises";
import { encodeFunctionData, parseAbi } from "viem";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { createHarness, type Harness } from "../../../src/harness/index.ts";
import { permit2Address } from "../../../src/methods/permit2/permit.ts";
import { revertingDelegateAddress } from "../../../src/payer/accounts.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import type { Hex } from "../../../src/protocol/hex.ts";
import { requestJson } from "../../../src/util/http-client.ts";

/*
 * Payments by Permit2 while the chain is not as it was, or not as the local ones are: other code at an address, no code at all,
 * answers that fail.
 */

const originalCode = "node_modules/@uniswap/v4-periphery/lib/permit2/test/utils/DeployPermit2.sol";
const multicall3 = "0xcA11bde05977b3631167028862bE2a173976CA11";

let harness: Harness<"base">;
beforeAll(async () => {
  harness = await createHarness({ networks: ["base"] });
});
beforeEach(() => harness.reset());
afterAll(() => harness?.close());

const pay = (terms: object = {}) => harness.pay({ network: "base", method: "permit2", ...terms });
const setCode = (address: Hex, bytecode: Hex) => harness.networks.base.client.setCode({ address, bytecode });

test("the published code of Permit2 takes what its stand-in takes; what it allows spenders itself is no approval of it", async () => {
  const [, code = ""] = /hex"(\w+)"/.exec(await readFile(originalCode, "utf8")) ?? [];
  await setCode(permit2Address, `0x${code}`);
  const { client, asset, facilitatorContract } = harness.networks.base;
  const account = testPayers.unapproved.address;
  const abi = parseAbi([
    "function approve(address token, address spender, uint160 amount, uint48 expiration)",
  ]);
  await client.setBalance({ address: account, value: 10n ** 18n });
  await client.impersonateAccount({ address: account });
  const args = [asset.address, facilitatorContract.address, 2n ** 160n - 1n, 2 ** 48 - 1] as const;
  const data = encodeFunctionData({ abi, functionName: "approve", args });
  const hash = await client.sendTransaction({ account, to: permit2Address, data, chain: null });
  expect((await client.waitForTransactionReceipt({ hash })).status).toBe("success");

  expect((await pay({ payer: "unapproved" })).settle.body).toMatchObject({
    errorReason: "permit2_allowance_required",
  });
  for (const terms of [{}, { payer: "smartWallet" }, { scheme: "upto", max: 20_000n, amount: 1_858n }]) {
    expect((await pay(terms)).settle.body).toMatchObject({ success: true });
  }
});

test("without Multicall3, refusals have the reasons that they have with it", async () => {
  await setCode(multicall3, "0x");
  const reasonOf = async (payer: string) => (await pay({ payer })).verify.body;
  expect(await reasonOf("unapproved")).toMatchObject({ invalidReason: "permit2_allowance_required" });
  expect(await reasonOf("empty")).toMatchObject({ invalidReason: "permit2_insufficient_balance" });
});

test("without Permit2, EIP-3009 goes on, and Permit2 is refused by the name of what is missing", async () => {
  await setCode(permit2Address, "0x");
  expect((await pay()).settle.body).toMatchObject({ errorReason: "permit2_proxy_not_deployed" });
  expect((await pay({ method: "eip3009" })).settle.body).toMatchObject({ success: true });
});

test("a wallet whose code cannot be read is not told that its signature is bad, and pays once it can", async () => {
  const request = await harness.sign({ network: "base", method: "permit2", payer: "smartWallet" });
  for (const method of ["eth_getCode", "eth_call", "eth_getProof"]) {
    await harness.faults.on("base", { method }).error(-32_000, "the node is not well");
  }
  const answers = [await harness.verify(request), await harness.settle(request)];
  expect(answers.map(({ status }) => status)).toEqual([503, 503]);
  await harness.faults.clear();
  expect((await harness.settle(request)).body).toMatchObject({ success: true });
});

test("an account that becomes a contract between verify and settle is judged again, and once more when it is none", async () => {
  const { address } = testPayers.funded;
  const request = await harness.sign({ network: "base", method: "permit2" });
  expect((await harness.verify(request)).body).toMatchObject({ isValid: true });
  const before = await harness.networks.base.balanceOf(address);
  // A delegation (EIP-7702) to what refuses every signature.
  await setCode(address, `0xef0100${revertingDelegateAddress.slice(2)}`);
  expect((await harness.settle(request)).body).toMatchObject({ success: false, transaction: "" });
  expect(await harness.networks.base.balanceOf(address)).toBe(before);
  await setCode(address, "0x");
  expect((await harness.settle(request)).body).toMatchObject({ success: true });
});

test("who submits “upto” payments is the contract each time it is asked, so that what servers keep stays right", async () => {
  const supportedSchema = z.object({
    kinds: z.array(z.looseObject({ scheme: z.string(), extra: z.looseObject({}).optional() })),
  });
  const headers = { authorization: harness.organization.apiKey };
  const asked = async () => {
    const { body } = await requestJson(`${harness.facilitator.url}/supported`, { headers });
    return supportedSchema.parse(body).kinds.find(({ scheme }) => scheme === "upto")?.extra;
  };
  const { address } = harness.networks.base.facilitatorContract;
  for (let times = 0; times < 3; times++) {
    expect(await asked()).toMatchObject({ facilitatorAddress: address });
    await harness.reset();
  }
});

test("a token that would refuse an approval is paid with where Permit2 may take everything already", async () => {
  const spec = { asset: "usdt", payer: "smartWallet" } as const;
  await harness.networks.base.approvePermit2(testPayers.sponsored.address, 2n ** 256n - 1n, "usdt");
  expect((await pay(spec)).settle.body).toMatchObject({ success: true });
  expect((await pay({ ...spec, payer: "sponsored", approval: "transaction" })).settle.body).toMatchObject({
    success: true,
  });
});
