import { privateKeyToAddress } from "viem/accounts";
import {
  type Deployment,
  type DeploymentArguments,
  deployContract,
  planDeployment,
  prepareDeployment,
} from "../../chain/deploy/deployment.ts";
import { readBalance } from "../../chain/deploy/priced-transaction.ts";
import type { DeployEnvironment } from "../../config/environment.ts";
import { contractVariables } from "../../config/variables.ts";
import { type Address, sameAddress } from "../../protocol/hex.ts";
import { ConfigurationError } from "../../util/errors.ts";
import type { Outcome } from "../kit/command.ts";
import { deploymentAsJson, formatArguments, renderDeployed, renderInPlace, renderPlan } from "./report.ts";
import { confirm, connectToNetwork, type DeploySession, findPublishedAccounts } from "./session.ts";

/** What the command line says of the contract's constructor; `none` for a role that no account gets. */
export type GivenArguments = {
  admin: Address | undefined;
  "admin-delay": number;
  operators: readonly Address[] | undefined;
  recoverer: Address | "none" | undefined;
  pauser: Address | "none" | undefined;
};

/** Deploys the contract where it is not deployed yet. */
export async function deployAnew(session: DeploySession, given: GivenArguments): Promise<Outcome | number> {
  const { network, environment, signer, mode, json, terminal } = session;
  const { print, printError } = terminal;
  const deployment = planDeployment(network.tier, resolveArguments(given, environment));
  refuseOtherAddress(session, deployment);
  const sender = signer?.address ?? deployment.arguments.admin;
  const published = findPublishedAccounts(session, accountsOf(deployment, sender));

  const onChain = await connectToNetwork(session, deployment.address);
  const plan = await prepareDeployment(onChain, deployment, sender);
  if (plan.state === "in place") {
    const { contract } = plan;
    return {
      json: deploymentAsJson(network, deployment, { state: "in place", contract }),
      text: renderInPlace(network, deployment, contract),
    };
  }

  const { transaction } = plan;
  const balance = await readBalance(onChain.rpc, sender);
  if (!json) print(renderPlan(network, deployment, { transaction, sender, balance, published }));
  if (mode === "dry run" || signer === undefined) {
    return {
      json: deploymentAsJson(network, deployment, { state: "planned", transaction }),
      text: "Dry run: nothing was sent.",
    };
  }
  const unfunded =
    balance === 0n ? [`${sender} has no ${network.nativeCoin} to pay for it: fund it first.`] : [];
  if (!(await confirm(session, `Deploy on ${network.name}?`, unfunded))) {
    printError("Nothing was sent.");
    return 1;
  }
  const deployed = await deployContract(onChain, deployment, transaction, signer, terminal.takeSignals());
  return {
    json: deploymentAsJson(network, deployment, { state: "deployed", transaction, ...deployed }),
    text: renderDeployed(network, deployment, deployed),
  };
}

/**
 * What the contract is deployed with: what was given, and otherwise the accounts of the keys that `serve` and this
 * command use.
 *
 * @throws ConfigurationError when something is missing
 */
function resolveArguments(given: GivenArguments, environment: DeployEnvironment): DeploymentArguments {
  const { deployerKey, operatorKeys, operatorAddresses, recovererKey } = environment;
  const admin = given.admin ?? (deployerKey && privateKeyToAddress(deployerKey));
  const configured = operatorKeys.length > 0 ? operatorKeys.map(privateKeyToAddress) : operatorAddresses;
  const operators = given.operators ?? configured;
  const recoverer = given.recoverer ?? (recovererKey && privateKeyToAddress(recovererKey));
  const pauser = given.pauser ?? admin;
  if (operators.length === 0) {
    throw new ConfigurationError([
      {
        name: "--operators",
        problem: "is needed, or OPERATOR_PRIVATE_KEY, or OPERATOR_ADDRESS: who may settle",
        example: "--operators 0x857b06519E91e3A54538791bDbb0E22373e36b66",
      },
    ]);
  }
  if (admin === undefined) {
    throw new ConfigurationError([
      {
        name: "DEPLOYER_PRIVATE_KEY",
        problem: "is needed; for a dry run, --admin is enough",
        example: "0x and 64 hexadecimal digits",
      },
    ]);
  }
  return {
    admin,
    adminDelay: given["admin-delay"],
    operators,
    recoverer: recoverer === "none" ? undefined : recoverer,
    pauser: pauser === "none" ? undefined : pauser,
  };
}

/**
 * Refuses to deploy beside what is configured: the networks of a tier share one address.
 *
 * @throws ConfigurationError
 */
function refuseOtherAddress({ network, environment }: DeploySession, deployment: Deployment): void {
  const variable = contractVariables[network.tier];
  const configured = environment.contracts[network.tier];
  if (configured === undefined || sameAddress(configured, deployment.address)) return;
  throw new ConfigurationError([
    {
      name: variable,
      problem: `is ${configured}, but these arguments give ${deployment.address}; they are: ${formatArguments(deployment.arguments)}. Give those of the first deployment, and change operators afterwards; or unset ${variable} to begin anew`,
    },
  ]);
}

/** Every account with a role, and the option that names it. */
function accountsOf({ arguments: given }: Deployment, sender: Address): { name: string; address: Address }[] {
  const { admin, operators, recoverer, pauser } = given;
  return [
    { name: "DEPLOYER_PRIVATE_KEY", address: sender },
    { name: "--admin", address: admin },
    ...operators.map((address) => ({ name: "--operators", address })),
    ...(recoverer === undefined ? [] : [{ name: "--recoverer", address: recoverer }]),
    ...(pauser === undefined ? [] : [{ name: "--pauser", address: pauser }]),
  ];
}
