import { createPublicClient, encodeDeployData, http, keccak256, stringToHex } from "viem";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { placeContracts } from "../../../test/support/place-contracts.ts";
import { mockUsdcAbi } from "../../contracts/mockUsdc.ts";
import {
  x402FacilitatorAbi,
  x402FacilitatorBytecode,
  x402FacilitatorDeployedBytecode,
} from "../../contracts/x402Facilitator.ts";
import { harnessAccounts } from "../../payer/accounts.ts";
import { localContracts } from "../../payer/local-chains.ts";
import { create2Deployer } from "../../protocol/create2.ts";
import type { Address } from "../../protocol/hex.ts";
import { startWatchdog, type Watchdog } from "../../util/watchdog.ts";
import { type LocalNode, startNode } from "../nodes/nodes.ts";
import { planLocalDeployment } from "./addresses.ts";
import { mockToken, runConstructorsOnce } from "./place-contract.ts";

const { admin, operator, recoverer, pauser, treasury } = harnessAccounts;
const custom: Address = "0xabcdef0123456789abcdef0123456789abcdef01";

const facilitatorAt = (address: Address) => ({
  name: "X402Facilitator",
  address,
  initCode: planLocalDeployment("mainnet").initCode,
});

let watchdog: Watchdog;
let node: LocalNode;

beforeAll(async () => {
  watchdog = startWatchdog();
  node = await startNode({ name: "base", chainId: 8453, watchdog });
});
afterAll(async () => {
  await node?.stop();
  await watchdog?.close();
});

const client = () => createPublicClient({ transport: http(node.rpcUrl) });

/** The constructor's decisions, read from the contract. */
async function rolesAt(address: Address) {
  const contract = { address, abi: x402FacilitatorAbi } as const;
  const has = (role: string, account: Address) =>
    client().readContract({
      ...contract,
      functionName: "hasRole",
      args: [keccak256(stringToHex(role)), account],
    });
  return {
    owner: await client().readContract({ ...contract, functionName: "owner" }),
    adminDelay: await client().readContract({ ...contract, functionName: "defaultAdminDelay" }),
    operator: await has("OPERATOR_ROLE", operator.address),
    recoverer: await has("RECOVERER_ROLE", recoverer.address),
    pauser: await has("PAUSER_ROLE", pauser.address),
    treasuryOperates: await has("OPERATOR_ROLE", treasury.address),
    paused: await client().readContract({ ...contract, functionName: "paused" }),
  };
}

describe("placeContracts", () => {
  it("leaves a contract at a chosen address as its constructor would", async () => {
    await placeContracts(node, [facilitatorAt(custom)]);

    expect(await client().getCode({ address: custom })).toBe(x402FacilitatorDeployedBytecode);
    expect(await rolesAt(custom)).toEqual({
      owner: admin.address,
      adminDelay: 172_800,
      operator: true,
      recoverer: true,
      pauser: true,
      treasuryOperates: false,
      paused: false,
    });
    expect(await client().getTransactionCount({ address: custom })).toBe(1);
  });

  it("does the same as a real deployment through the CREATE2 deployer, which lands at the default address", async () => {
    const { mainnet } = localContracts;
    await node.request("anvil_setBalance", treasury.address, "0xde0b6b3a7640000");
    await node.request("anvil_impersonateAccount", treasury.address);
    const { data } = planLocalDeployment("mainnet").call;
    await node.request("eth_sendTransaction", { from: treasury.address, to: create2Deployer, data });
    await node.request("evm_mine");

    expect(await client().getCode({ address: mainnet })).toBe(x402FacilitatorDeployedBytecode);
    expect(await rolesAt(mainnet)).toEqual(await rolesAt(custom));
  });

  it("places texts of any length and any number of decimals, and computes the domain for the address and chain it stands on", async () => {
    const name = "A token with a name that is longer than one word: 32 bytes or more";
    const address: Address = "0x00000000000000000000000000000000DeaDBeef";
    await placeContracts(node, [mockToken({ address, name, version: "7", decimals: 18 })]);
    const contract = { address, abi: mockUsdcAbi } as const;
    expect(await client().readContract({ ...contract, functionName: "name" })).toBe(name);
    expect(await client().readContract({ ...contract, functionName: "version" })).toBe("7");
    expect(await client().readContract({ ...contract, functionName: "decimals" })).toBe(18);
    expect(await client().readContract({ ...contract, functionName: "owner" })).toBe(treasury.address);
  });

  it("replaces the code that stood at the address, and what the constructor writes", async () => {
    const address: Address = "0x1111111111111111111111111111111111111111";
    // Slot 2 is the admin: a constructor that saw the old one would refuse to set another.
    await node.batch([
      ["anvil_setCode", address, "0x5f5ffd"],
      ["anvil_setNonce", address, "0x29"],
      ["anvil_setStorageAt", address, `0x${"0".repeat(63)}2`, `0x${"0".repeat(24)}${"22".repeat(20)}`],
    ]);
    await placeContracts(node, [facilitatorAt(address)]);

    expect(await rolesAt(address)).toEqual(await rolesAt(custom));
    expect(await client().getTransactionCount({ address })).toBe(1);
  });

  it("runs a constructor once in a process for the same chain, address and code", async () => {
    const address: Address = "0x2222222222222222222222222222222222222222";
    const asked: string[] = [];
    const watched: LocalNode = {
      ...node,
      batch(calls) {
        asked.push(...calls.map(([method]) => method));
        return node.batch(calls);
      },
    };
    const usdc = { address, name: "USD Coin", version: "2", decimals: 6 };
    const run = (chainId: number, asset = usdc) =>
      runConstructorsOnce(watched, chainId, [facilitatorAt(custom), mockToken(asset)]);
    const first = await run(8453);
    const { length } = asked;
    expect(await run(8453)).toEqual(first);
    expect(asked).toHaveLength(length);
    await run(10);
    await run(8453, { ...usdc, version: "1" });
    expect(asked).toHaveLength(3 * length);

    await node.batch([["anvil_setCode", address, "0x"], ...(await run(8453))]);
    const contract = { address, abi: mockUsdcAbi } as const;
    expect(await client().readContract({ ...contract, functionName: "version" })).toBe("2");
    expect(await rolesAt(custom)).toMatchObject({ owner: admin.address, operator: true });
  });

  it("mines nothing", async () => {
    const nonceBefore = await client().getTransactionCount({ address: treasury.address });
    await placeContracts(node, [facilitatorAt(custom)]);
    expect(await client().getTransactionCount({ address: treasury.address })).toBe(nonceBefore);
  });

  it("says which constructor failed", async () => {
    const zeroAdmin = encodeDeployData({
      abi: x402FacilitatorAbi,
      bytecode: x402FacilitatorBytecode,
      args: [0, `0x${"0".repeat(40)}`, [], recoverer.address, pauser.address],
    });
    const failing = placeContracts(node, [
      facilitatorAt(custom),
      { name: "a contract without admin", address: custom, initCode: zeroAdmin },
    ]);
    await expect(failing).rejects.toThrow("The constructor of a contract without admin failed");
  });

  it("refuses a constructor that changes another account", async () => {
    // Creates an empty contract: PUSH0 PUSH0 PUSH0 CREATE; then returns one byte of code.
    const initCode = "0x5f5f5ff05060015ff3";
    const failing = placeContracts(node, [{ name: "a factory", address: custom, initCode }]);
    await expect(failing).rejects.toThrow(/The constructor of a factory changes 0x[0-9a-f]{40}/);
  });
});
