import type { NetworkConfig } from "../config/network-config.ts";
import { contractVariables } from "../config/variables.ts";
import {
  type ContractState,
  contractCalls,
  type Membership,
  readContractState,
} from "../deploy/contract-state.ts";
import { type Address, sameAddress } from "../protocol/hex.ts";
import { self } from "../util/self-command.ts";
import { type Accounts, type Check, failed, type NetworkCheck, ok, warning } from "./check.ts";

/** Checks the facilitator contract and its roles. */
export const contractCheck: NetworkCheck = {
  name: "contract",
  required: true,
  calls: (context) => contractCalls(context.network.facilitatorContract, membershipsOf(context)),
  read(answers, context) {
    const { network, operators, recoverer } = context;
    const state = readContractState(answers, membershipsOf(context));
    const code = checkCode(network, state);
    if (state.code === "none") return [code];
    return [
      code,
      ...checkPaused(state),
      ...state.memberships.map((membership) => checkMembership(network, membership)),
      ...checkAdmin(state, [...operators, ...(recoverer === undefined ? [] : [recoverer])]),
    ];
  },
};

function membershipsOf({ operators, recoverer }: Accounts): readonly Membership[] {
  return [
    ...operators.map((account) => ({ role: "operator", account }) as const),
    ...(recoverer === undefined ? [] : [{ role: "recoverer", account: recoverer } as const]),
  ];
}

function checkCode({ name, tier, facilitatorContract }: NetworkConfig, { code }: ContractState): Check {
  const variable = contractVariables[tier];
  switch (code) {
    case "ours":
      return ok("contract", `${facilitatorContract} has the code of this version`);
    case "none":
      return failed("contract", `there is no facilitator contract at ${facilitatorContract}`, {
        advice: `Deploy it with ${self} deploy --network ${name}, or correct ${variable}.`,
        fatal: true,
      });
    case "other":
      return failed("contract", `${facilitatorContract} has other code than this version's contract`, {
        advice: `Correct ${variable}, deploy anew with ${self} deploy --network ${name}, or run the version that deployed it.`,
        fatal: true,
      });
  }
}

function checkPaused({ paused }: ContractState): readonly Check[] {
  if (paused !== true) return [];
  return [
    warning("paused", "the contract is paused: nothing settles", "Its pauser ends that with unpause()."),
  ];
}

function checkMembership(
  { name }: NetworkConfig,
  { role, account, holds }: ContractState["memberships"][number],
): Check {
  const title = `${role.toUpperCase()}_ROLE`;
  if (holds === true) return ok(role, `${account} holds ${title}`, { account });
  if (holds === undefined) {
    const detail = `whether ${account} holds ${title} cannot be asked: the contract knows no roles`;
    return failed(role, detail, { account });
  }
  const advice =
    role === "operator"
      ? `The admin grants it: ${self} deploy --network ${name} --grant-operator ${account}`
      : "The admin grants it, by grantRole; without it, leave RECOVERER_PRIVATE_KEY out.";
  return failed(role, `${account} does not hold ${title}`, { advice, account });
}

/** Warns if a key on the server is also the contract's admin. */
function checkAdmin({ admin }: ContractState, accounts: readonly Address[]): readonly Check[] {
  if (admin === undefined || !accounts.some((account) => sameAddress(account, admin))) return [];
  return [
    warning(
      "admin",
      `${admin} is also the admin of the contract: a thief of this server's key would control it`,
      "Hand the admin role to a key that is kept offline, or to a multi-signature wallet.",
    ),
  ];
}
