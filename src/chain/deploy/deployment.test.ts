import { encodeDeployData, zeroAddress } from "viem";
import { expect, test } from "vitest";
import { x402FacilitatorAbi, x402FacilitatorBytecode } from "../../contracts/x402Facilitator.ts";
import { harnessAccounts } from "../../payer/accounts.ts";
import { localContracts } from "../../payer/local-chains.ts";
import { networks } from "../../protocol/networks.ts";
import { type DeploymentArguments, planDeployment, siblingsOf } from "./deployment.ts";

const { admin, operator, recoverer, pauser, treasury } = harnessAccounts;
const given: DeploymentArguments = {
  admin: admin.address,
  adminDelay: 172_800,
  operators: [operator.address],
  recoverer: recoverer.address,
  pauser: pauser.address,
};

test("with the accounts of the local chains, the address is the one that they have by default", () => {
  expect(planDeployment("mainnet", given).address).toBe(localContracts.mainnet);
  expect(planDeployment("testnet", given).address).toBe(localContracts.testnet);
});

test("the constructor's arguments are encoded as viem does", () => {
  const { initCode } = planDeployment("mainnet", {
    ...given,
    operators: [operator.address, treasury.address],
    pauser: undefined,
  });
  const operators = [operator.address, treasury.address].sort((a, b) =>
    a.toLowerCase() < b.toLowerCase() ? -1 : 1,
  );
  expect(initCode).toBe(
    encodeDeployData({
      abi: x402FacilitatorAbi,
      bytecode: x402FacilitatorBytecode,
      args: [172_800, admin.address, operators, recoverer.address, zeroAddress],
    }),
  );
});

test("whatever the contract begins with decides on the address", () => {
  const addresses = [
    given,
    { ...given, admin: treasury.address },
    { ...given, adminDelay: 1 },
    { ...given, operators: [operator.address, treasury.address] },
    { ...given, recoverer: undefined },
    { ...given, pauser: undefined },
  ].flatMap((one) => [planDeployment("mainnet", one).address, planDeployment("testnet", one).address]);
  expect(new Set(addresses).size).toBe(addresses.length);
});

test("in which order operators are named does not", () => {
  const operators = [operator.address, treasury.address, recoverer.address];
  const planned = planDeployment("mainnet", { ...given, operators });
  expect(planDeployment("mainnet", { ...given, operators: operators.toReversed() })).toEqual(planned);
});

test("mainnets share an address, and so do the test networks", () => {
  expect(siblingsOf(networks.base)).toEqual(["optimism", "polygon"]);
  expect(siblingsOf(networks["base-sepolia"])).toEqual(["optimism-sepolia"]);
});
