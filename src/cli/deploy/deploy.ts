import { readAddress, readNetwork, readWholeNumber } from "../../config/values.ts";
import { variablesOf } from "../../config/variables.ts";
import type { Address } from "../../protocol/hex.ts";
import type { ConfigurationProblem } from "../../util/errors.ts";
import {
  addressOption,
  defineCommand,
  flag,
  networkFileOption,
  type Options,
  option,
  requireNetwork,
  type Values,
} from "../kit/command.ts";

/** Two days: enough to notice a thief's transfer of the admin role, and to cancel it. */
const usualAdminDelay = 172_800;

const deployOptions = {
  network: option("NAME", "where to deploy", { read: readNetwork, example: "base-sepolia", required: true }),
  ...networkFileOption,
  "dry-run": flag("print what would be sent, and send nothing"),
  yes: flag("send without asking"),
  json: flag("print one line of JSON; with --yes or --dry-run"),
  admin: addressOption("who grants and revokes roles (default: the account of DEPLOYER_PRIVATE_KEY)"),
  "admin-delay": option(
    "SECONDS",
    "seconds before a transfer of the admin role can be accepted (two days are 172800)",
    { read: readWholeNumber(0, 2_592_000), default: `${usualAdminDelay}` },
  ),
  operators: accounts("who may settle (default: the accounts of OPERATOR_PRIVATE_KEY, or OPERATOR_ADDRESS)"),
  recoverer: accountOrNone("who may recover, or none (default: the account of RECOVERER_PRIVATE_KEY)"),
  pauser: accountOrNone("who may pause, or none (default: the admin)"),
  "grant-operator": accounts("grant the role on a contract that stands already, instead of deploying"),
  "revoke-operator": accounts("revoke it"),
  contract: addressOption(
    "on which contract to grant or revoke (default: FACILITATOR_CONTRACT_MAINNET or _TESTNET)",
  ),
} satisfies Options;

export const deployCommand = defineCommand({
  usesEnvFile: true,
  options: deployOptions,
  variables: variablesOf("deploy"),
  check: checkDeployOptions,

  async run(values, terminal) {
    const {
      network: name,
      json,
      yes,
      "grant-operator": grants = [],
      "revoke-operator": revocations = [],
    } = values;
    const { openSession } = await import("./session.ts");
    const mode = values["dry-run"] ? "dry run" : yes ? "send" : "ask";
    const session = openSession({ network: requireNetwork(terminal.networks, name), mode, json, terminal });
    if (grants.length + revocations.length === 0) {
      const { deployAnew } = await import("./run-deploy.ts");
      return deployAnew(session, values);
    }
    const { changeOperators } = await import("./run-deploy.ts");
    return changeOperators(session, {
      contract: values.contract,
      changes: [
        ...grants.map((account) => ({ change: "grant", account }) as const),
        ...revocations.map((account) => ({ change: "revoke", account }) as const),
      ],
    });
  },
});

type DeployValues = Values<typeof deployOptions>;

/** Checks that involve several options. */
function checkDeployOptions(values: Partial<DeployValues>): readonly ConfigurationProblem[] {
  const { json, yes, "dry-run": dryRun, "grant-operator": grants, "revoke-operator": revocations } = values;
  const problems: ConfigurationProblem[] = [];
  const refuse = (name: string, problem: string) => problems.push({ name, problem });
  if (json === true && yes !== true && dryRun !== true) {
    refuse("--json", "needs --yes or --dry-run: it does not ask");
  }
  if (yes === true && dryRun === true) refuse("--yes", "contradicts --dry-run");
  if (grants === undefined && revocations === undefined) {
    if (values.contract !== undefined) refuse("--contract", "is for --grant-operator and --revoke-operator");
    return problems;
  }
  for (const name of ["admin", "operators", "recoverer", "pauser"] as const) {
    if (values[name] !== undefined) refuse(`--${name}`, "is for a new contract, not for changing operators");
  }
  if (grants?.some((granted) => revocations?.includes(granted))) {
    refuse("--revoke-operator", "names an account that --grant-operator names");
  }
  return problems;
}

function accounts(describe: string) {
  const read = (text: string) => [...new Set(text.split(",").map((part) => readAddress(part.trim())))];
  return { ...addressOption(describe), placeholder: "ADDRESSES", read };
}

function accountOrNone(describe: string) {
  const read = (text: string): Address | "none" => (text === "none" ? "none" : readAddress(text));
  return { ...addressOption(describe), read };
}
