import type { Chain, Diagnosis, SettleCall } from "../chain/chain.ts";
import { describeRevert, type Revert } from "../chain/revert.ts";
import { UndeterminedError } from "../errors/undetermined.ts";
import { type Invalid, type InvalidReason, invalid } from "../protocol/reasons.ts";

/** FiatTokenV2_2's own words where state alone cannot tell; compared whole, as part of the token's interface. */
const tokenReasons: ReadonlyMap<string, InvalidReason> = new Map([
  ["FiatTokenV2: authorization is not yet valid", "invalid_exact_evm_payload_authorization_valid_after"],
  ["FiatTokenV2: authorization is expired", "invalid_exact_evm_payload_authorization_valid_before"],
  ["FiatTokenV2: invalid signature", "invalid_exact_evm_payload_signature"],
  ["ECRecover: invalid signature", "invalid_exact_evm_payload_signature"],
  ["ECRecover: invalid signature length", "invalid_exact_evm_payload_signature"],
  ["ECRecover: invalid signature 's' value", "invalid_exact_evm_payload_signature"],
  ["ECRecover: invalid signature 'v' value", "invalid_exact_evm_payload_signature"],
]);

/**
 * Why a correctly signed payment would not settle, after its simulation reverted. Reads the state that may explain
 * it, and falls back on the token's own words.
 *
 * @throws UndeterminedError when the fault is ours: the contract paused, or the operator without its role.
 */
export async function judgeRevert(chain: Chain, call: SettleCall, revert: Revert): Promise<Invalid> {
  if (revert.kind === "custom" && revert.name === "InsufficientGas") {
    throw new UndeterminedError("The facilitator could not simulate the settlement; try again", {
      hints: [`The RPC of ${chain.network.name} caps the gas of eth_call below what settle needs`],
    });
  }
  const state = await chain.diagnose(call);
  if (!state.operatorAuthorized || state.contractPaused) {
    throw new UndeterminedError("The facilitator cannot settle at the moment", {
      hints: [
        state.contractPaused
          ? `The facilitator contract on ${chain.network.name} is paused: unpause it with the pauser's key`
          : `The operator lacks OPERATOR_ROLE on ${chain.network.name}: grant it with the admin key`,
      ],
    });
  }
  return explainByState(state, call) ?? explainByRevert(revert, call);
}

function explainByState(state: Diagnosis, { authorization, recipient }: SettleCall): Invalid | undefined {
  const blocked = (what: string) => invalid("invalid_transaction_state", what);
  if (state.authorizationUsed) return blocked("The authorization was used or cancelled before");
  if (state.tokenPaused) return blocked("The asset is paused by its issuer");
  if (state.payerBlacklisted) return blocked("The payer is blacklisted by the asset's issuer");
  if (state.recipientBlacklisted)
    return blocked(`The recipient ${recipient} is blacklisted by the asset's issuer`);
  if (state.contractBlacklisted)
    return blocked("The facilitator contract is blacklisted by the asset's issuer");
  if (state.balance < authorization.value) {
    return invalid(
      "insufficient_funds",
      `The payer holds ${state.balance} of the asset's smallest unit; ${authorization.value} is needed`,
    );
  }
  return undefined;
}

function explainByRevert(revert: Revert, { authorization }: SettleCall): Invalid {
  const reason = revert.kind === "error" ? tokenReasons.get(revert.message) : undefined;
  switch (reason) {
    case "invalid_exact_evm_payload_signature":
      return invalid(
        reason,
        `The token does not accept the signature for ${authorization.from}: code at the payer's address (EIP-7702, EIP-1271) decides there`,
      );
    case undefined:
      return invalid(
        "invalid_transaction_state",
        `Settling would revert on chain: ${describeRevert(revert)}`,
      );
    default:
      return invalid(reason, "The authorization is outside of its time window on chain");
  }
}
