import type { Chain, ChainQueries } from "../../../chain/chain.ts";
import { askViews, expectWord } from "../../../chain/chain-reader.ts";
import { describeRevert, type Revert } from "../../../chain/revert.ts";
import type { RpcAnswer } from "../../../chain/rpc/rpc.ts";
import {
  balanceOf,
  hasOperatorRole,
  isBlacklisted,
  isPaused,
  selector,
  type ViewCall,
  viewGas,
} from "../../../chain/views.ts";
import { type Invalid, invalid, type RefusedSituation } from "../../../protocol/catalogue.ts";
import {
  type Address,
  addressWord,
  type Hex,
  isBytes32,
  keccak256Text,
  quantity,
  readQuantity,
} from "../../../protocol/hex.ts";
import { type Asset, findAsset } from "../../../protocol/networks.ts";
import { refusals } from "../../../protocol/refusals.ts";
import type { SignedPayment } from "../../../protocol/signed-payment.ts";
import { OperatorError, UndeterminedError } from "../../../util/errors.ts";
import { membersOf } from "../../../util/json.ts";
import type { PaymentState, SettleCall } from "../../on-chain/settling.ts";
import { authorizationCanceledTopic, authorizationUsedTopic, transferTopic } from "./events.ts";

/** The state that can keep a correctly signed payment from settling. */
export type Diagnosis = PayerState & {
  recipientBlacklisted: boolean;
  contractBlacklisted: boolean;
  contractPaused: boolean;
  operatorAuthorized: boolean;
};

/** Reads whatever may explain a failed simulation. */
export async function diagnose(
  { reader, operator, network: { facilitatorContract } }: ChainQueries,
  { payment, recipient, id }: SettleCall,
): Promise<Diagnosis> {
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
      isBlacklisted(payment.asset, recipient),
      isBlacklisted(payment.asset, facilitatorContract),
      isPaused(facilitatorContract),
      hasOperatorRole(facilitatorContract, operator),
    ],
    viewGas,
    id,
  );
  return {
    ...payerStateOf(
      expectWord(reader, "authorizationState of the asset", used),
      expectWord(reader, "balanceOf of the asset", balance),
      payerBlacklisted?.word,
      tokenPaused?.word,
    ),
    recipientBlacklisted: isTrue(recipientBlacklisted?.word),
    contractBlacklisted: isTrue(contractBlacklisted?.word),
    contractPaused: isTrue(expectWord(reader, "paused of the facilitator contract", contractPaused)),
    operatorAuthorized: isTrue(expectWord(reader, "hasRole of the facilitator contract", operatorAuthorized)),
  };
}

/** {@link Settling.stateOf} */
export async function stateOf(chain: ChainQueries, call: SettleCall): Promise<PaymentState> {
  const state = await diagnose(chain, call);
  return { used: state.used, obstacle: findObstacle(state) };
}

/** Why a forward would be reverted, as far as state tells. */
function findObstacle(state: Diagnosis): string | undefined {
  if (state.contractPaused) return "the facilitator contract is paused";
  if (state.tokenPaused) return "the token is paused by its issuer";
  if (state.contractBlacklisted) return "the facilitator contract is blacklisted by the token's issuer";
  if (state.recipientBlacklisted) return "the recipient is blacklisted by the token's issuer";
  return undefined;
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
  if (revert.kind === "custom" && revert.name === "InsufficientGas") {
    throw new UndeterminedError("The facilitator could not simulate the settlement; try again", {
      hints: [`The RPC of ${chain.network.name} caps the gas of eth_call below what settle needs`],
    });
  }
  const state = await diagnose(chain, call);
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
  const asset = findAsset(chain.network.assets, call.payment.asset);
  return explainByState(state, call, asset) ?? explainByRevert(revert, call);
}

function explainByState(
  state: Diagnosis,
  { payment, recipient }: SettleCall,
  asset: Asset | undefined,
): Invalid | undefined {
  if (state.used) return refusals.usedOnChain();
  if (state.tokenPaused) return refusals.assetPaused();
  if (state.payerBlacklisted) return refusals.payerBlacklisted();
  if (state.recipientBlacklisted) return refusals.recipientBlacklisted(recipient);
  if (state.contractBlacklisted) return refusals.contractBlacklisted();
  return state.balance < payment.limit
    ? refusals.balanceTooSmall(state.balance, payment.limit, asset)
    : undefined;
}

function explainByRevert(revert: Revert, { payment }: SettleCall): Invalid {
  const situation = revert.kind === "error" ? tokenWords.get(revert.message) : undefined;
  switch (situation) {
    case "token_refuses_signature":
      return refusals.tokenRefusesSignature(payment.payer);
    case undefined:
      return invalid("would_revert", `Settling would revert on chain: ${describeRevert(revert)}`);
    default:
      return invalid(situation, "The authorization is outside of its time window on chain");
  }
}

/** A payment as its token knows it. */
export type KnownPayment = Pick<SignedPayment, "asset" | "payer" | "nonce">;

/** What a token says of a payer and of one of its payments. */
export type PayerState = {
  /** Used or cancelled, however long ago: a token does not tell these two apart. */
  used: boolean;
  /** In the token's smallest unit. */
  balance: bigint;
  payerBlacklisted: boolean;
  /** Whether all transfers of the token are stopped. */
  tokenPaused: boolean;
};

/** Asks a node one call; throws if it does not answer. */
type Ask = (method: string, ...params: readonly unknown[]) => Promise<RpcAnswer>;

/** What {@link payerStateOf} reads, in its order. */
export function payerViews({ asset, payer, nonce }: KnownPayment): ViewCall[] {
  return [
    authorizationStateOf(asset, payer, nonce),
    balanceOf(asset, payer),
    isBlacklisted(asset, payer),
    isPaused(asset),
  ];
}

/** The words that the views gave. A token without a blacklist, or a pause, has neither. */
export function payerStateOf(used: Hex, balance: Hex, blacklisted?: Hex, paused?: Hex): PayerState {
  return {
    used: isTrue(used),
    balance: BigInt(balance),
    payerBlacklisted: isTrue(blacklisted),
    tokenPaused: isTrue(paused),
  };
}

export function isTrue(word: Hex | undefined): boolean {
  return word !== undefined && BigInt(word) !== 0n;
}

/**
 * Asks a node for the state at a block, such as `latest`.
 *
 * @returns undefined where it does not say: it has forgotten that block, or the token is none
 */
export async function askPayerState(
  ask: Ask,
  payment: KnownPayment,
  block: string,
): Promise<PayerState | undefined> {
  const [used, balance, blacklisted, paused] = await Promise.all(
    payerViews(payment).map(async ({ target: to, data }) => {
      // Otherwise a revert: the contract refuses, or lacks the function.
      const { result } = await ask("eth_call", { to, data }, block);
      return isBytes32(result) ? result : undefined;
    }),
  );
  if (used === undefined || balance === undefined) return undefined;
  return payerStateOf(used, balance, blacklisted, paused);
}

const blacklistTopics = ["Blacklisted(address)", "UnBlacklisted(address)"].map(keccak256Text);
const pauseTopics = ["Pause()", "Unpause()"].map(keccak256Text);

/**
 * Works out the state at a block from that at a later one, by what the token has logged in between.
 *
 * @returns undefined when the node does not give the logs
 */
export async function rewindPayerState(
  ask: Ask,
  { asset, payer: account, nonce }: KnownPayment,
  { to: wanted, at: known, state }: { to: bigint; at: bigint; state: PayerState },
): Promise<PayerState | undefined> {
  if (known <= wanted) return state;
  const payer = `0x${addressWord(account)}`;
  const range = { address: asset, fromBlock: quantity(wanted + 1n), toBlock: quantity(known) };
  const logs = async (...topics: unknown[]): Promise<readonly unknown[] | undefined> => {
    const { result } = await ask("eth_getLogs", { ...range, topics });
    return Array.isArray(result) ? result : undefined;
  };
  const [sent, received, uses, listings, pauses] = await Promise.all([
    logs(transferTopic, payer),
    logs(transferTopic, null, payer),
    logs([authorizationUsedTopic, authorizationCanceledTopic], payer, nonce),
    logs(blacklistTopics, payer),
    logs(pauseTopics),
  ]);
  if (!sent || !received || !uses || !listings || !pauses) return undefined;
  const sum = (transfers: readonly unknown[]) =>
    transfers.reduce<bigint>((total, log) => total + (readQuantity(membersOf(log).data) ?? 0n), 0n);
  // Before the first event the opposite held.
  const before = (events: readonly unknown[], begins: Hex | undefined, now: boolean) => {
    const [first] = events;
    return first === undefined ? now : [membersOf(first).topics].flat()[0] !== begins;
  };
  return {
    balance: state.balance + sum(sent) - sum(received),
    used: uses.length > 0 ? false : state.used,
    payerBlacklisted: before(listings, blacklistTopics[0], state.payerBlacklisted),
    tokenPaused: before(pauses, pauseTopics[0], state.tokenPaused),
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

/** What may be forwarded of an asset at once, and what of that may be now. */
export function forwardLimitOf(facilitatorContract: Address, asset: Address): [ViewCall, ViewCall] {
  const view = (selected: Hex): ViewCall => ({
    target: facilitatorContract,
    data: `${selected}${addressWord(asset)}`,
  });
  return [view(forwardLimit), view(availableToForward)];
}
