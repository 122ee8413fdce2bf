import type { Chain, ChainQueries } from "../../../chain/chain.ts";
import { askViews, expectWord } from "../../../chain/chain-reader.ts";
import { describeRevert, type Revert } from "../../../chain/revert.ts";
import {
  balanceOf,
  hasOperatorRole,
  isBlacklisted,
  isPaused,
  isTrue,
  selector,
  type ViewCall,
  viewGas,
} from "../../../chain/views.ts";
import { type Invalid, invalid, type RefusedSituation } from "../../../protocol/catalogue.ts";
import { type Address, addressWord, type Hex } from "../../../protocol/hex.ts";
import { type Asset, findAsset } from "../../../protocol/networks.ts";
import { refusals } from "../../../protocol/refusals.ts";
import {
  goesStraight,
  isErc6492,
  type SignedPayment,
  unwrapErc6492,
} from "../../../protocol/signed-payment.ts";
import {
  findObstacle,
  type PaymentState,
  requireOperable,
  requireSimulated,
  type SettleCall,
} from "../../on-chain/settling.ts";
import type { UseView } from "../../on-chain/use-reader.ts";
import { eip3009Words } from "../eip3009-method.ts";

/** What a token says of a payer and of one of its payments. */
export type TokenState = {
  /** Used or cancelled, however long ago: a token does not tell these two apart. */
  used: boolean;
  /** In the token's smallest unit. */
  balance: bigint;
  payerBlacklisted: boolean;
  /** Whether all transfers of the token are stopped. */
  tokenPaused: boolean;
};

/** The state that can keep a correctly signed payment from settling. */
export type Diagnosis = TokenState & {
  recipientBlacklisted: boolean;
  contractBlacklisted: boolean;
  contractPaused: boolean;
  operatorAuthorized: boolean;
};

/**
 * Reads whatever may explain a failed simulation. Where the token alone settles, the facilitator contract has no part in it, and
 * the payee is whom the payment was signed to.
 */
export async function diagnose(
  { reader, operator, network: { facilitatorContract } }: ChainQueries,
  { payment, recipient, id }: SettleCall,
  isByToken = false,
): Promise<Diagnosis> {
  const { asset, payTo } = payment;
  const ofContract = [
    isBlacklisted(asset, facilitatorContract),
    isPaused(facilitatorContract),
    hasOperatorRole(facilitatorContract, operator),
  ];
  const [
    used,
    balance,
    payerBlacklisted,
    tokenPaused,
    recipientBlacklisted,
    contractBlacklisted,
    contractPaused,
    operatorAuthorized,
  ] = await askViews(
    reader,
    [
      ...payerViews(payment),
      isBlacklisted(asset, isByToken ? payTo : recipient),
      ...(isByToken ? [] : ofContract),
    ],
    viewGas,
    id,
  );
  const isSaid = (what: string, answer: typeof used) =>
    isTrue(expectWord(reader, `${what} of the facilitator contract`, answer));
  return {
    ...payerStateOf(
      expectWord(reader, "authorizationState of the asset", used),
      expectWord(reader, "balanceOf of the asset", balance),
      payerBlacklisted?.word,
      tokenPaused?.word,
    ),
    recipientBlacklisted: isTrue(recipientBlacklisted?.word),
    contractBlacklisted: isTrue(contractBlacklisted?.word),
    contractPaused: !isByToken && isSaid("paused", contractPaused),
    operatorAuthorized: isByToken || isSaid("hasRole", operatorAuthorized),
  };
}

/** {@link Settling.stateOf} */
export async function stateOf(chain: ChainQueries, call: SettleCall): Promise<PaymentState> {
  // What goes straight to its payee has nothing in its way once it is used.
  if (goesStraight(call.payment, chain.network)) return { used: (await diagnose(chain, call, true)).used };
  const state = await diagnose(chain, call);
  return { used: state.used, obstacle: findObstacle(state) };
}

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
export async function explainRevert(chain: Chain, call: SettleCall, revert: Revert): Promise<Invalid> {
  requireSimulated(revert, chain.network);
  const state = await diagnose(chain, call, isTokenCall(call, chain.network));
  requireOperable(state, chain.network);
  const asset = findAsset(chain.network.assets, call.payment.asset);
  const { payer, signature } = call.payment;
  const deployment = unwrapErc6492(signature);
  if (deployment !== undefined && revert.kind === "custom" && revert.name === "WalletNotDeployed") {
    return refusals.factoryFails(payer, chain.network.name, deployment.factory);
  }
  const isStraight = goesStraight(call.payment, chain.network);
  return explainByState(state, call, { asset, isStraight }) ?? explainByRevert(revert, call);
}

/** Whether a payment is settled by the token alone. A wallet that is deployed with it needs the contract on either route. */
function isTokenCall({ payment }: SettleCall, network: ChainQueries["network"]): boolean {
  return goesStraight(payment, network) && !isErc6492(payment.signature);
}

function explainByState(
  state: Diagnosis,
  { payment, recipient }: SettleCall,
  { asset, isStraight }: { asset: Asset | undefined; isStraight: boolean },
): Invalid | undefined {
  if (state.used) return refusals.usedOnChain();
  if (state.tokenPaused) return refusals.assetPaused();
  if (state.payerBlacklisted) return refusals.payerBlacklisted();
  if (state.recipientBlacklisted) return refusals.recipientBlacklisted(recipient);
  if (state.contractBlacklisted && !isStraight) return refusals.contractBlacklisted();
  return state.balance < payment.limit
    ? refusals.balanceTooSmall(state.balance, payment.limit, asset)
    : undefined;
}

function explainByRevert(revert: Revert, { payment }: SettleCall): Invalid {
  const situation = revert.kind === "error" ? tokenWords.get(revert.message) : undefined;
  switch (situation) {
    case "token_refuses_signature":
      return refusals.tokenRefusesSignature(payment.payer, eip3009Words);
    case undefined:
      return invalid("would_revert", `Settling would revert on chain: ${describeRevert(revert)}`);
    default:
      return invalid(situation, "The authorization is outside of its time window on chain");
  }
}

/** What {@link payerStateOf} reads, in its order. */
export function payerViews({
  asset,
  payer,
  nonce,
}: Pick<SignedPayment, "asset" | "payer" | "nonce">): ViewCall[] {
  return [
    authorizationStateOf(asset, payer, nonce),
    balanceOf(asset, payer),
    isBlacklisted(asset, payer),
    isPaused(asset),
  ];
}

/** The words that the views gave. A token without a blacklist, or a pause, has neither. */
export function payerStateOf(used: Hex, balance: Hex, blacklisted?: Hex, paused?: Hex): TokenState {
  return {
    used: isTrue(used),
    balance: BigInt(balance),
    payerBlacklisted: isTrue(blacklisted),
    tokenPaused: isTrue(paused),
  };
}

const authorizationState = selector("authorizationState(address,bytes32)");
const forwardLimit = selector("forwardLimit(address)");
const availableToForward = selector("availableToForward(address)");

/** Whether a payer's authorization was used or cancelled (EIP-3009). */
export function authorizationStateOf(asset: Address, payer: Address, authorizationNonce: Hex): ViewCall {
  const data: Hex = `${authorizationState}${addressWord(payer)}${authorizationNonce.slice(2)}`;
  return { target: asset, data };
}

/** Whether the token has the authorization of a payment as used or cancelled. */
export const authorizationUse: UseView = {
  viewOf: ({ asset, payer, nonce }) => authorizationStateOf(asset, payer, nonce),
  isUsed: (_, word) => isTrue(word),
};

/** What may be forwarded of an asset at once, and what of that may be now. */
export function forwardLimitOf(facilitatorContract: Address, asset: Address): [ViewCall, ViewCall] {
  const view = (selected: Hex): ViewCall => ({
    target: facilitatorContract,
    data: `${selected}${addressWord(asset)}`,
  });
  return [view(forwardLimit), view(availableToForward)];
}
