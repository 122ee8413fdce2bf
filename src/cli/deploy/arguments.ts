import { privateKeyToAddress } from "viem/accounts";
import type { DeployEnvironment } from "../../config/deploy-environment.ts";
import type { DeploymentArguments } from "../../deploy/deployment.ts";
import { ConfigurationError } from "../../errors.ts";
import type { Address } from "../../protocol/hex.ts";

/** What the command line says of the contract's constructor; `none` where nobody is to have a role. */
export type GivenArguments = {
  admin: Address | undefined;
  "admin-delay": number;
  operators: readonly Address[] | undefined;
  recoverer: Address | "none" | undefined;
  pauser: Address | "none" | undefined;
};

/**
 * What the contract is deployed with: what was given, and otherwise the accounts of the keys that `serve` and this
 * command use.
 *
 * @throws ConfigurationError when something is missing
 */
export function resolveArguments(given: GivenArguments, environment: DeployEnvironment): DeploymentArguments {
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

/** The options that give the same arguments again, and with them the same address. */
export function formatArguments({
  admin,
  adminDelay,
  operators,
  recoverer,
  pauser,
}: DeploymentArguments): string {
  return [
    `--admin ${admin}`,
    `--admin-delay ${adminDelay}`,
    `--operators ${operators.join(",")}`,
    `--recoverer ${recoverer ?? "none"}`,
    `--pauser ${pauser ?? "none"}`,
  ].join(" ");
}
