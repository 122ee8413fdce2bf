import type { Revert } from "../../chain/revert.ts";
import { OperatorError, UndeterminedError } from "../../util/errors.ts";

/** What stands in the way of all payments through the facilitator contract. */
export type ContractState = { contractPaused: boolean; operatorAuthorized: boolean };

/**
 * A simulation that ran out of gas says nothing of the payment.
 *
 * @throws UndeterminedError
 */
export function requireSimulated(revert: Revert, { name }: { name: string }): void {
  if (revert.kind !== "custom" || revert.name !== "InsufficientGas") return;
  throw new UndeterminedError("The facilitator could not simulate the settlement; try again", {
    hints: [`The RPC of ${name} caps the gas of eth_call below what settling needs`],
  });
}

/**
 * Neither is a fault of the payment.
 *
 * @throws UndeterminedError where the contract is paused, OperatorError where the operator lacks its role
 */
export function requireOperable(
  { contractPaused, operatorAuthorized }: ContractState,
  { name }: { name: string },
): void {
  if (contractPaused) {
    throw new UndeterminedError("The facilitator cannot settle at the moment", {
      hints: [`The facilitator contract on ${name} is paused: unpause it with the pauser's key`],
    });
  }
  if (!operatorAuthorized) {
    throw new OperatorError("without OPERATOR_ROLE", {
      hints: [`The operator lacks OPERATOR_ROLE on ${name}: grant it with the admin key`],
    });
  }
}

/** Why a forward would be reverted, as far as state tells. */
export function findObstacle(
  state: Pick<ContractState, "contractPaused"> &
    Readonly<Record<"tokenPaused" | "contractBlacklisted" | "recipientBlacklisted", boolean>>,
): string | undefined {
  if (state.contractPaused) return "the facilitator contract is paused";
  if (state.tokenPaused) return "the token is paused by its issuer";
  if (state.contractBlacklisted) return "the facilitator contract is blacklisted by the token's issuer";
  if (state.recipientBlacklisted) return "the recipient is blacklisted by the token's issuer";
  return undefined;
}
