import { type Deployment, planDeployment } from "../../chain/deploy/deployment.ts";
import {
  delegateAddress,
  harnessAccounts,
  revertingDelegateAddress,
  usdcImplementationAddress,
  usdcSignaturesAddress,
} from "../../payer/accounts.ts";
import { localContracts, localTokens } from "../../payer/local-chains.ts";
import { testPayers } from "../../payer/test-payers.ts";
import { create2Deployer } from "../../protocol/create2.ts";
import { type Address, readAddress, sameAddress } from "../../protocol/hex.ts";
import { type Asset, type NetworkTier, networkNames, networks } from "../../protocol/networks.ts";
import { ConfigurationError, type ConfigurationProblem } from "../../util/errors.ts";
import { publicContracts } from "./place-contract.ts";

/** The addresses of the facilitator contract: one for all mainnets, the other for all testnets. */
export type FacilitatorContracts = Readonly<Record<NetworkTier, Address>>;

/** Plans the contract's deployment with the harness's accounts, exactly as `x402-kit deploy` would. */
export function planLocalDeployment(tier: NetworkTier): Deployment {
  const { admin, operator, recoverer, pauser } = harnessAccounts;
  return planDeployment(tier, {
    admin: admin.address,
    adminDelay: 172_800,
    operators: [operator.address],
    recoverer: recoverer.address,
    pauser: pauser.address,
  });
}

/** The environment variables of the two addresses, for error messages. */
const variables: Readonly<Record<NetworkTier, string>> = {
  mainnet: "FACILITATOR_CONTRACT_MAINNET",
  testnet: "FACILITATOR_CONTRACT_TESTNET",
};

/**
 * Returns the addresses of the facilitator contract, with defaults for those not configured. They are checksummed (EIP-55),
 * because clients refuse mixed-case addresses with a wrong checksum.
 *
 * @param configured the addresses as the user wrote them
 * @param assets the tokens on the chains; USDC of every network by default
 * @param names the names of the two settings in error messages
 * @throws {ConfigurationError} listing everything that is wrong with them
 */
export function resolveFacilitatorContracts(
  configured: Readonly<Partial<Record<NetworkTier, string | undefined>>> = {},
  assets: readonly Asset[] = networkNames.map((name) => networks[name].usdc),
  names: Readonly<Record<NetworkTier, string>> = variables,
): FacilitatorContracts {
  const { mainnet, testnet } = configured;
  const problems: ConfigurationProblem[] = [];
  const refuse = (tier: NetworkTier, problem: string): Address => {
    problems.push({ name: names[tier], problem, example: localContracts[tier] });
    return localContracts[tier];
  };
  const resolve = (tier: NetworkTier, value: string | undefined): Address => {
    if (value === undefined) return localContracts[tier];
    const { address, problem } = readAddress(value);
    if (problem !== undefined) return refuse(tier, problem);
    const taken = collision(address, assets);
    return taken === undefined ? address : refuse(tier, taken);
  };

  const resolved = { mainnet: resolve("mainnet", mainnet), testnet: resolve("testnet", testnet) };
  if (problems.length === 0 && sameAddress(resolved.mainnet, resolved.testnet)) {
    const name: NetworkTier = testnet === undefined ? "mainnet" : "testnet";
    const other: NetworkTier = name === "mainnet" ? "testnet" : "mainnet";
    problems.push({
      name: names[name],
      problem: `is the same address as ${names[other]}; mainnets and testnets need one each`,
      example: localContracts[name],
    });
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
  return resolved;
}

/** Returns the problem if something else already has the address, otherwise undefined. */
export function collision(value: Address, assets: readonly Asset[]): string | undefined {
  const number = BigInt(value);
  // Ethereum's precompiles are below 0x20, those of layer 2 (RIP-7212) start at 0x100.
  if (number < 0x200n) return "is the address of a precompiled contract";
  if (number >> 12n === 0x42n << 140n) return "is in the range of the system contracts of optimism and base";
  for (const [address, what] of inhabitants(assets)) {
    if (sameAddress(address, value)) return `is the address of ${what}`;
  }
  return undefined;
}

function inhabitants(assets: readonly Asset[]): readonly (readonly [Address, string])[] {
  return [
    [create2Deployer, "the CREATE2 deployer"],
    ...publicContracts.map(
      ({ address }) => [address, "a contract that every chain has, such as Permit2"] as const,
    ),
    [delegateAddress, "the code of delegated test payers"],
    [revertingDelegateAddress, "the code of delegated test payers"],
    [usdcImplementationAddress, "the code of the mock token"],
    [usdcSignaturesAddress, "the code of the mock token"],
    ...assets
      .concat(Object.values(localTokens))
      .map(({ address, name }) => [address, `the asset "${name}"`] as const),
    ...Object.entries(testPayers).map(([name, { address }]) => [address, `the test payer ${name}`] as const),
    ...Object.entries(harnessAccounts).map(([name, { address }]) => [address, `the ${name}`] as const),
  ];
}
