import { type Address, sameAddress } from "../../protocol/hex.ts";
import { KitError } from "../../util/errors.ts";
import { self } from "../../util/self-command.ts";
import { readContract } from "./contract-state.ts";
import type { OnChain } from "./on-chain.ts";
import { encodeOperatorChange } from "./roles.ts";
import type { ContractCall } from "./transaction.ts";

/** An account that is to become an operator, or to be one no longer. */
export type RoleChange = { change: "grant" | "revoke"; account: Address };

/** A change with the call that makes it; undefined where it is so already. */
export type PlannedChange = RoleChange & { call: ContractCall | undefined };

/** The changes of operators that are asked for, and what is still to be done for each. */
export type OperatorPlan = { contract: Address; admin: Address; changes: readonly PlannedChange[] };

/**
 * Finds out which changes of operators are still to be made.
 *
 * @throws KitError when there is no contract of ours at the address
 */
export async function planOperatorChanges(
  { rpc, network }: OnChain,
  changes: readonly RoleChange[],
): Promise<OperatorPlan> {
  const { facilitatorContract: contract, name } = network;
  const state = await readContract(
    rpc,
    contract,
    changes.map(({ account }) => ({ role: "operator", account })),
  );
  if (state.admin === undefined || state.memberships.some(({ holds }) => holds === undefined)) {
    throw new KitError(`There is no facilitator contract at ${contract} on ${name}`, {
      hints: [`Deploy it first: ${self} deploy --network ${name}`],
    });
  }
  return {
    contract,
    admin: state.admin,
    changes: changes.map(({ change, account }, index) => {
      const isOperator = state.memberships[index]?.holds === true;
      const isDone = isOperator === (change === "grant");
      const call = isDone ? undefined : { to: contract, data: encodeOperatorChange(change, account) };
      return { change, account, call };
    }),
  };
}

/** Whether an account may make the changes of a plan. */
export function isAdmin({ admin }: OperatorPlan, account: Address | undefined): boolean {
  return account !== undefined && sameAddress(admin, account);
}
