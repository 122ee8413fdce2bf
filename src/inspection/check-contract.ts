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
import type { Accounts, Check, NetworkCheck } from "./check.ts";

/** Looks at the facilitator contract, and at who may do what on it. */
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
      return {
        name: "contract",
        status: "ok",
        detail: `${facilitatorContract} has the code of this version`,
      };
    case "none":
      return {
        name: "contract",
        status: "failed",
        detail: `there is no facilitator contract at ${facilitatorContract}`,
        advice: `Deploy it with ${self} deploy --network ${name}, or correct ${variable}.`,
        fatal: true,
      };
    case "other":
      return {
        name: "contract",
        status: "failed",
        detail: `${facilitatorContract} has other code than this version's contract`,
        advice: `Correct ${variable}, deploy anew with ${self} deploy --network ${name}, or run the version that deployed it.`,
        fatal: true,
      };
  }
}

function checkPaused({ paused }: ContractState): readonly Check[] {
  if (paused !== true) return [];
  return [
    {
      name: "paused",
      status: "warning",
      detail: "the contract is paused: nothing settles",
      advice: "Its pauser ends that with unpause().",
    },
  ];
}

function checkMembership(
  { name }: NetworkConfig,
  { role, account, holds }: ContractState["memberships"][number],
): Check {
  const title = `${role.toUpperCase()}_ROLE`;
  if (holds === true) return { name: role, status: "ok", detail: `${account} holds ${title}`, account };
  if (holds === undefined) {
    return {
      name: role,
      status: "failed",
      detail: `whether ${account} holds ${title} cannot be asked: the contract knows no roles`,
      account,
    };
  }
  return {
    name: role,
    status: "failed",
    detail: `${account} does not hold ${title}`,
    account,
    advice:
      role === "operator"
        ? `The admin grants it: ${self} deploy --network ${name} --grant-operator ${account}`
        : `The admin grants it, by grantRole; without it, leave RECOVERER_PRIVATE_KEY out.`,
  };
}

/** A key on a server that can also change who may do what. */
function checkAdmin({ admin }: ContractState, accounts: readonly Address[]): readonly Check[] {
  if (admin === undefined || !accounts.some((account) => sameAddress(account, admin))) return [];
  return [
    {
      name: "admin",
      status: "warning",
      detail: `${admin} is also the admin of the contract: a thief of this server's key would control it`,
      advice: "Hand the admin role to a key that is kept offline, or to a multi-signature wallet.",
    },
  ];
}
