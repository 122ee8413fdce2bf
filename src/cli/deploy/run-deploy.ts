import { privateKeyToAddress } from "viem/accounts";
import {
  isAdmin,
  type OperatorPlan,
  planOperatorChanges,
  type RoleChange,
} from "../../chain/deploy/contract-state.ts";
import {
  type Deployment,
  type DeploymentArguments,
  deployContract,
  planDeployment,
  prepareDeployment,
} from "../../chain/deploy/deployment.ts";
import type { OnChain } from "../../chain/deploy/endpoints.ts";
import {
  type ContractCall,
  priceTransaction,
  readBalance,
  sendTransaction,
} from "../../chain/deploy/priced-transaction.ts";
import type { Signer } from "../../chain/signing/local-signer.ts";
import type { DeployEnvironment } from "../../config/environment.ts";
import { contractVariables } from "../../config/variables.ts";
import { type Address, type Hex, sameAddress } from "../../protocol/hex.ts";
import type { Network } from "../../protocol/networks.ts";
import { formatCoins } from "../../protocol/token-units.ts";
import { ConfigurationError, KitError } from "../../util/errors.ts";
import type { Outcome } from "../kit/command.ts";
import {
  costRows,
  deploymentAsJson,
  formatArguments,
  operatorsAsJson,
  renderDeployed,
  renderInPlace,
  renderPlan,
  rows,
} from "./report.ts";
import { confirm, connectToNetwork, type DeploySession, findPublishedAccounts } from "./session.ts";

/** The contract's constructor arguments from the command line; `none` for a role without an account. */
export type GivenArguments = {
  admin: Address | undefined;
  "admin-delay": number;
  operators: readonly Address[] | undefined;
  recoverer: Address | "none" | undefined;
  pauser: Address | "none" | undefined;
};

/** Deploys the contract unless it is in place already. */
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
 * The constructor arguments from the command line; by default the accounts of the keys that `serve` and this command
 * use.
 *
 * @throws ConfigurationError if something is missing
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
 * Refuses to deploy a contract other than the configured one: the networks of a tier share one address.
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

/** Grants and revokes the operator role, except for accounts that are already as requested. */
export async function changeOperators(
  session: DeploySession,
  given: { contract: Address | undefined; changes: readonly RoleChange[] },
): Promise<Outcome | number> {
  const { network, signer, mode, json, terminal } = session;
  const { print, printError } = terminal;
  const granted = given.changes.filter(({ change }) => change === "grant");
  findPublishedAccounts(session, [
    ...(signer === undefined ? [] : [{ name: "DEPLOYER_PRIVATE_KEY", address: signer.address }]),
    ...granted.map(({ account }) => ({ name: "--grant-operator", address: account })),
  ]);
  const onChain = await connectToNetwork(session, given.contract ?? configuredContract(session));
  const plan = await planOperatorChanges(onChain, given.changes);
  const calls = plan.changes.flatMap(({ call }) => call ?? []);
  const sends = mode !== "dry run" && signer !== undefined && isAdmin(plan, signer.address);

  if (!json) print(await renderChanges(network, onChain, plan, sends));
  if (calls.length === 0) {
    return { json: operatorsAsJson(network, plan, "in place"), text: "Nothing was to be done." };
  }
  if (mode === "dry run") {
    return { json: operatorsAsJson(network, plan, "planned"), text: "Dry run: nothing was sent." };
  }
  if (!sends) {
    throw new KitError(`Only the admin, ${plan.admin}, may change operators; nothing was sent`, {
      hints: ["Set DEPLOYER_PRIVATE_KEY to its key, or have it send the calls that --dry-run prints."],
    });
  }
  if (!(await confirm(session, `Change the operators on ${network.name}?`))) {
    printError("Nothing was sent.");
    return 1;
  }
  const hashes = await sendAll(onChain, signer, calls, terminal.takeSignals());
  return {
    json: operatorsAsJson(network, plan, "changed", hashes),
    text: `Changed by ${hashes.join(", ")}.`,
  };
}

async function sendAll(
  onChain: OnChain,
  signer: Signer,
  calls: readonly ContractCall[],
  interrupted: AbortSignal,
): Promise<Hex[]> {
  const hashes: Hex[] = [];
  for (const call of calls) {
    const transaction = await priceTransaction(onChain, signer.address, call);
    const { hash } = await sendTransaction(onChain, signer, transaction, interrupted);
    hashes.push(hash);
  }
  return hashes;
}

function configuredContract({ network, environment }: DeploySession): Address {
  const configured = environment.contracts[network.tier];
  if (configured !== undefined) return configured;
  throw new ConfigurationError([
    {
      name: contractVariables[network.tier],
      problem: "is needed to know whose operators to change, or --contract",
      example: "0x4020000000000000000000000000000000000001",
    },
  ]);
}

/** The text shown before anything is sent. If this command will not send them, it lists the calls for the admin. */
async function renderChanges(
  network: Network,
  onChain: OnChain,
  { contract, admin, changes }: OperatorPlan,
  sends: boolean,
): Promise<string> {
  const calls = changes.flatMap(({ call }) => call ?? []);
  const [first] = calls;
  const describe = ({ change, call }: OperatorPlan["changes"][number]) =>
    call === undefined ? `${change === "grant" ? "is one" : "is none"} already` : `${change} the role`;
  return [
    `Operators of the facilitator contract on ${network.name} (chain ${network.chainId})`,
    "",
    ...rows([
      ["contract", contract],
      [
        "admin",
        sends ? `${admin}, which has ${formatCoins(await readBalance(onChain.rpc, admin), network)}` : admin,
      ],
      ...changes.map((one): [string, string] => [one.account, describe(one)]),
      ...(first === undefined ? [] : costRows(network, await priceTransaction(onChain, admin, first))),
    ]),
    ...(calls.length > 1 ? [`  ${calls.length} transactions, of which each costs about that`] : []),
    ...(calls.length > 0 && !sends
      ? ["", "What the admin has to send, for example from a multi-signature wallet:"]
      : []),
    ...(sends ? [] : calls.map(({ to, data }) => `  to ${to}  data ${data}`)),
    "",
  ].join("\n");
}
