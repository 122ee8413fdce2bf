import { join } from "node:path";
import { readNetworkFile } from "../../../src/config/network-file.ts";
import { resolveFacilitatorContracts } from "../../../src/harness/setup/addresses.ts";
import { startChains } from "../../../src/harness/setup/chains.ts";
import type { HarnessChain } from "../../../src/harness/setup/prepare-chain.ts";
import { migrate, openDatabase } from "../../../src/ledger/database/open-database.ts";
import type { Address } from "../../../src/protocol/hex.ts";
import type { NetworkName } from "../../../src/protocol/networks.ts";
import { accountOf, keyOf } from "../key-accounts.ts";
import { runHere } from "../run-here.ts";
import { makeDirectory, type Variables } from "./command.ts";

/** Chains with a token and the contract, deployed by `x402-kit deploy`, and a valid configuration for them. */
export type DeployedChains<N extends NetworkName> = {
  chains: Readonly<Record<N, HarnessChain>>;
  contract: Address;
  /** The variables that `serve` needs. The database is migrated. */
  variables: Variables;
  databaseUrl: string;
  /** Deletes the database's directory, and stops the nodes. */
  stop(): Promise<void>;
};

/** Accounts and a pepper that the commands do not recognize as published. */
export const deployer = accountOf("deployer").address;
export const operator = accountOf("operator").address;
export const pepper = "d2f0a96c5b7e4e0c8b1a7f3369c45e12";

const ether = 10n ** 18n;

export async function startDeployedChains<const N extends NetworkName>(
  names: readonly [N, ...N[]],
  /** The network file that defines those of the names that are not built in. */
  networkFile?: string,
): Promise<DeployedChains<N>> {
  const running = await startChains({
    networks: names,
    ...(networkFile !== undefined && { knownNetworks: readNetworkFile(networkFile) }),
    facilitatorContracts: resolveFacilitatorContracts(),
  });
  const chains = running.chains as Readonly<Record<N, HarnessChain>>;
  const rpcUrls = {
    ...(networkFile !== undefined && { NETWORKS_FILE: networkFile }),
    ...Object.fromEntries(
      names.map((name) => [`${name.toUpperCase().replaceAll("-", "_")}_RPC_URL`, chains[name].rpcUrl]),
    ),
  };
  const keys = { OPERATOR_PRIVATE_KEY: keyOf("operator"), DEPLOYER_PRIVATE_KEY: keyOf("deployer") };
  let contract: Address | undefined;
  for (const name of names) {
    await chains[name].setBalance(deployer, ether);
    await chains[name].setBalance(operator, 100n * ether);
    const { stdout, stderr } = await runHere(["deploy", "--network", name, "--yes", "--json"], {
      ...rpcUrls,
      ...keys,
    });
    if (stdout === "") throw new Error(stderr);
    contract = JSON.parse(stdout).contract;
  }
  if (contract === undefined) throw new Error("nothing was deployed");

  const directory = await makeDirectory();
  const databaseUrl = `sqlite:${join(directory.path, "facilitator.db")}`;
  const db = await openDatabase({ url: databaseUrl });
  await migrate(db);
  await db.destroy();
  return {
    chains,
    contract,
    databaseUrl,
    variables: {
      ...rpcUrls,
      FACILITATOR_CONTRACT_MAINNET: contract,
      OPERATOR_PRIVATE_KEY: keys.OPERATOR_PRIVATE_KEY,
      DATABASE_URL: databaseUrl,
      API_KEY_PEPPER: pepper,
      PORT: "0",
    },
    async stop() {
      await running.stop();
      await directory[Symbol.asyncDispose]();
    },
  };
}
