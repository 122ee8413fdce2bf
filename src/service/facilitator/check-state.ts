import type { Chain, Diagnosis } from "../../chain/chain.ts";
import type { SettleCall } from "../../chain/contract/calls.ts";
import { describeRevert, type Revert } from "../../chain/contract/revert.ts";
import { type Invalid, invalid, type RefusedSituation } from "../../protocol/catalogue.ts";
import { type Asset, findAsset } from "../../protocol/networks.ts";
import { refusals } from "../../protocol/refusals.ts";
import { OperatorError, UndeterminedError } from "../../util/errors.ts";

/** FiatTokenV2_2's own words where state alone cannot tell; compared whole, as part of the token's interface. */
const tokenWords: ReadonlyMap<string, RefusedSituation> = new Map([
  ["FiatTokenV2: authorization is not yet valid", "never_valid"],
  ["FiatTokenV2: authorization is expired", "expired"],
  ["FiatTokenV2: invalid signature", "token_refuses_signature"],
  ["ECRecover: invalid signature", "token_refuses_signature"],
  ["ECRecover: invalid signature length", "token_refuses_signature"],
  ["ECRecover: invalid signature 's' value", "token_refuses_signature"],
  ["ECRecover: invalid signature 'v' value", "token_refuses_signature"],
]);

/**
 * Why a correctly signed payment would not settle, after its simulation reverted. Reads the state that may explain
 * it, and falls back on the token's own words.
 *
 * @throws UndeterminedError when the fault is ours: the contract paused. OperatorError when it is the operator's: without
 * its role.
 */
export async function classifyRevert(chain: Chain, call: SettleCall, revert: Revert): Promise<Invalid> {
  if (revert.kind === "custom" && revert.name === "InsufficientGas") {
    throw new UndeterminedError("The facilitator could not simulate the settlement; try again", {
      hints: [`The RPC of ${chain.network.name} caps the gas of eth_call below what settle needs`],
    });
  }
  const state = await chain.diagnose(call);
  if (state.contractPaused) {
    throw new UndeterminedError("The facilitator cannot settle at the moment", {
      hints: [
        `The facilitator contract on ${chain.network.name} is paused: unpause it with the pauser's key`,
      ],
    });
  }
  if (!state.operatorAuthorized) {
    throw new OperatorError("without OPERATOR_ROLE", {
      hints: [`The operator lacks OPERATOR_ROLE on ${chain.network.name}: grant it with the admin key`],
    });
  }
  const asset = findAsset(chain.network.assets, call.asset);
  return explainByState(state, call, asset) ?? explainByRevert(revert, call);
}

function explainByState(
  state: Diagnosis,
  { authorization, recipient }: SettleCall,
  asset: Asset | undefined,
): Invalid | undefined {
  if (state.authorizationUsed) return refusals.usedOnChain();
  if (state.tokenPaused) return refusals.assetPaused();
  if (state.payerBlacklisted) return refusals.payerBlacklisted();
  if (state.recipientBlacklisted) return refusals.recipientBlacklisted(recipient);
  if (state.contractBlacklisted) return refusals.contractBlacklisted();
  return state.balance < authorization.value
    ? refusals.balanceTooSmall(state.balance, authorization.value, asset)
    : undefined;
}

function explainByRevert(revert: Revert, { authorization }: SettleCall): Invalid {
  const situation = revert.kind === "error" ? tokenWords.get(revert.message) : undefined;
  switch (situation) {
    case "token_refuses_signature":
      return refusals.tokenRefusesSignature(authorization.from);
    case undefined:
      return invalid("would_revert", `Settling would revert on chain: ${describeRevert(revert)}`);
    default:
      return invalid(situation, "The authorization is outside of its time window on chain");
  }
}
