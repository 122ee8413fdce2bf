import { readAddress, readNetwork, readWholeNumber } from "../../config/values.ts";
import type { ConfigurationProblem } from "../../errors.ts";
import type { Address } from "../../protocol/hex.ts";
import type { Option, Options, Values } from "../kit/command.ts";
import { flag } from "../kit/options.ts";

/** Two days: long enough to notice that somebody else transfers the admin role, and to cancel it. */
const usualAdminDelay = 172_800;

const example = "0x857b06519E91e3A54538791bDbb0E22373e36b66";

export const deployOptions = {
  network: {
    describe: "where to deploy",
    placeholder: "NAME",
    example: "base-sepolia",
    read: readNetwork,
    required: true,
  },
  "dry-run": flag("print what would be sent, and send nothing"),
  yes: flag("send without asking"),
  json: flag("print one line of JSON; with --yes or --dry-run"),
  admin: account("who grants and revokes roles (default: the account of DEPLOYER_PRIVATE_KEY)"),
  "admin-delay": {
    describe: "seconds before a transfer of the admin role can be accepted (two days are 172800)",
    placeholder: "SECONDS",
    example: `${usualAdminDelay}`,
    read: readWholeNumber(0, 2_592_000),
    default: `${usualAdminDelay}`,
  },
  operators: accounts("who may settle (default: the accounts of OPERATOR_PRIVATE_KEY, or OPERATOR_ADDRESS)"),
  recoverer: accountOrNone("who may recover, or none (default: the account of RECOVERER_PRIVATE_KEY)"),
  pauser: accountOrNone("who may pause, or none (default: the admin)"),
  "grant-operator": accounts("grant the role on a contract that stands already, instead of deploying"),
  "revoke-operator": accounts("revoke it"),
  contract: account(
    "on which contract to grant or revoke (default: FACILITATOR_CONTRACT_MAINNET or _TESTNET)",
  ),
} satisfies Options;

export type DeployValues = Values<typeof deployOptions>;

/** What can only be judged of several options together. */
export function checkDeployOptions(values: Partial<DeployValues>): readonly ConfigurationProblem[] {
  const { json, yes, "dry-run": dryRun, "grant-operator": grants, "revoke-operator": revocations } = values;
  const problems: ConfigurationProblem[] = [];
  const refuse = (name: string, problem: string) => problems.push({ name, problem });
  if (json === true && yes !== true && dryRun !== true) {
    refuse("--json", "needs --yes or --dry-run: nobody can be asked then");
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

function account(describe: string) {
  return { describe, placeholder: "ADDRESS", example, read: readAddress } satisfies Option;
}

function accounts(describe: string) {
  const read = (text: string) => [...new Set(text.split(",").map((part) => readAddress(part.trim())))];
  return { describe, placeholder: "ADDRESSES", example, read } satisfies Option;
}

function accountOrNone(describe: string) {
  const read = (text: string): Address | "none" => (text === "none" ? "none" : readAddress(text));
  return { describe, placeholder: "ADDRESS", example, read } satisfies Option;
}
