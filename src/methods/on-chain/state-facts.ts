import type { Chain, ChainQueries } from "../../chain/chain.ts";
import { askViews, type ChainReader } from "../../chain/chain-reader.ts";
import { describeRevert, type Revert } from "../../chain/revert.ts";
import type { AskNode } from "../../chain/rpc/calls.ts";
import {
  balanceOf,
  codeOf,
  hasOperatorRole,
  isBlacklisted,
  isPaused,
  isTrue,
  type ViewCall,
  type ViewResult,
  viewGas,
} from "../../chain/views.ts";
import type { Invalid } from "../../protocol/catalogue.ts";
import { type Address, type Hex, isBytes32 } from "../../protocol/hex.ts";
import { findAsset } from "../../protocol/networks.ts";
import { goesStraight, type SignedPayment } from "../../protocol/signed-payment.ts";
import { OperatorError, UndeterminedError } from "../../util/errors.ts";
import { approvalTransactionOf, transactionRefusals } from "../approval-transaction.ts";
import { type JudgedPayment, refuseByState, type StateFacts, type StateRefusals } from "../payment-state.ts";
import { amountOf, type SettleCall, type Settling } from "./settling.ts";

/** How to read a fact from a chain. `read` returns undefined if the contract does not answer. */
export type FactSource<Value = boolean | bigint> = {
  readonly view: ViewCall;
  readonly read: (answer: ViewResult) => Value | undefined;
};

/** The same for a fact that depends only on the returned word, not on the contract's code. */
export type WordSource<Value = boolean | bigint> = {
  readonly view: ViewCall;
  readonly read: (answer: Pick<ViewResult, "word">) => Value | undefined;
};

/** Reads a boolean; false if the contract has no such function, such as a token without a blacklist. */
export function flag(view: ViewCall): WordSource<boolean> {
  return { view, read: ({ word }) => isTrue(word) };
}

/** Reads a boolean of a contract that must have the function; otherwise undefined. */
export function neededFlag(view: ViewCall): WordSource<boolean> {
  return { view, read: ({ word }) => (word === undefined ? undefined : isTrue(word)) };
}

export function amount(view: ViewCall): WordSource<bigint> {
  return { view, read: ({ word }) => (word === undefined ? undefined : BigInt(word)) };
}

export function withoutCode(account: Address): FactSource<boolean> {
  return { view: codeOf(account), read: ({ codeHash }) => codeHash === null };
}

/** Adds a default to a source, for a contract that does not answer. */
export function orElse<Value>({ view, read }: FactSource<Value>, otherwise: Value): FactSource<Value> {
  return { view, read: (result) => read(result) ?? otherwise };
}

/** The token's facts that every payment method needs. */
export function tokenSources({ asset, payer }: Pick<SignedPayment, "asset" | "payer">) {
  return {
    payerBalance: amount(balanceOf(asset, payer)),
    payerBlacklisted: flag(isBlacklisted(asset, payer)),
    assetPaused: flag(isPaused(asset)),
  };
}

export async function askFact<Value>(
  ask: AskNode,
  { view: { target: to, data }, read }: WordSource<Value>,
  block = "latest",
): Promise<Value | undefined> {
  // Anything else is a revert, or a contract without the function.
  const { result } = await ask("eth_call", { to, data }, block);
  return read({ word: isBytes32(result) ? result : undefined });
}

type FactsOf<Sources> = {
  -readonly [Name in keyof Sources]: Sources[Name] extends FactSource<infer Value> | undefined
    ? Value
    : never;
};

/**
 * Reads facts at one block. `about` is as in {@link askViews}.
 *
 * @throws UndeterminedError if a contract does not answer
 */
export async function askFacts<Sources extends { readonly [name: string]: FactSource }>(
  reader: ChainReader,
  facts: Sources,
  about: Hex | undefined,
): Promise<FactsOf<Sources>> {
  const sources = Object.entries<FactSource>(facts);
  const views = sources.map(([, { view }]) => view);
  const results = await askViews(reader, views, viewGas, about);
  const read = results.map((result, index) => {
    const [name = "", source] = sources[index] ?? [];
    const fact = source?.read(result);
    if (fact !== undefined) return [name, fact] as const;
    throw reader.undetermined(`${name}: no such contract, or it has no such function`);
  });
  return Object.fromEntries(read) as FactsOf<Sources>;
}

/** The facts that the service reads from a chain, including some that are not the payment's fault. */
export type Diagnosis = StateFacts & {
  payerHasCode?: boolean;
  contractPaused?: boolean;
  operatorAuthorized?: boolean;
};

export type DiagnosisSources = {
  readonly [Name in keyof Omit<Diagnosis, "failingFactory">]: FactSource<NonNullable<Diagnosis[Name]>>;
};

/** Short reasons why the contract cannot forward payments that others have submitted. */
const obstacles: readonly [keyof Diagnosis, string][] = [
  ["contractPaused", "the facilitator contract is paused"],
  ["assetPaused", "the token is paused by its issuer"],
  ["contractBlacklisted", "the facilitator contract is blacklisted by the token's issuer"],
  ["recipientBlacklisted", "the recipient is blacklisted by the token's issuer"],
];

/** The parts of the diagnosis that depend on the payment method. */
type Diagnosed = {
  stateRefusals: StateRefusals;
  /** The facts about the payer, and those that the method needs. */
  sourcesOf(payment: SignedPayment): DiagnosisSources;
  /** Returns true if settling the payment involves the facilitator contract. */
  needsContract(payment: SignedPayment, network: ChainQueries["network"]): boolean;
  /** The facts that the revert itself shows. */
  factsOf(revert: Revert, payment: SignedPayment): StateFacts;
  /** The refusal for a revert that the chain's state does not explain. */
  explainRevert(revert: Revert, call: SettleCall, state: Diagnosis): Invalid;
};

/** Creates the functions that judge a method's payments by the chain's state. */
export function createDiagnosing({
  stateRefusals,
  sourcesOf,
  needsContract,
  factsOf,
  explainRevert,
}: Diagnosed): Required<Pick<Settling, "stateOf" | "explain" | "explainFirst">> & {
  diagnose(chain: ChainQueries, call: SettleCall): Promise<Diagnosis>;
} {
  function sourcesIn(
    { network, operator }: ChainQueries,
    { payment, recipient }: SettleCall,
  ): DiagnosisSources {
    const { asset, payTo } = payment;
    const { facilitatorContract } = network;
    const isStraight = goesStraight(payment, network);
    return {
      ...sourcesOf(payment),
      recipientBlacklisted: flag(isBlacklisted(asset, isStraight ? payTo : recipient)),
      ...(!isStraight && { contractBlacklisted: flag(isBlacklisted(asset, facilitatorContract)) }),
      ...(needsContract(payment, network) && {
        contractPaused: neededFlag(isPaused(facilitatorContract)),
        operatorAuthorized: neededFlag(hasOperatorRole(facilitatorContract, operator)),
      }),
    };
  }

  const diagnose = (chain: ChainQueries, call: SettleCall): Promise<Diagnosis> =>
    askFacts(chain.reader, sourcesIn(chain, call), call.id);

  function refuse(state: Diagnosis, call: SettleCall, network: Chain["network"]): Invalid | undefined {
    requireOperable(state, network);
    const { payment, recipient } = call;
    const token = findAsset(network.assets, payment.asset);
    const one: JudgedPayment = { payment, needed: amountOf(call), token, network: network.name, recipient };
    // The payer's own approval transaction comes first, so the current allowance does not matter.
    const isApproved = approvalTransactionOf(payment) !== undefined;
    const known = isApproved ? { ...state, payerAllowance: undefined } : state;
    return refuseByState({ stateRefusals }, known, one);
  }

  return {
    diagnose,

    async stateOf(chain, call) {
      const state = await diagnose(chain, call);
      const used = state.authorizationUsed === true;
      // A payment directly to its payee needs no forwarding, so nothing can block it once it is used.
      if (goesStraight(call.payment, chain.network)) return { used };
      return { used, obstacle: obstacles.find(([fact]) => state[fact])?.[1] };
    },

    async explain(chain, call, revert) {
      requireSimulated(revert, chain.network);
      const state = await diagnose(chain, call);
      return (
        refuse({ ...state, ...factsOf(revert, call.payment) }, call, chain.network) ??
        explainRevert(revert, call, state)
      );
    },

    // Here the first transaction is always the payer's own approval.
    async explainFirst(chain, call, outcome) {
      const state = await diagnose(chain, call);
      const byState = refuse(state, call, chain.network);
      if (byState !== undefined || outcome === "unknown") return byState;
      return transactionRefusals.refusedByToken(describeRevert(outcome));
    },
  };
}

/**
 * Requires that the simulation did not run out of gas: such a revert says nothing about the payment.
 *
 * @throws UndeterminedError
 */
function requireSimulated(revert: Revert, { name }: { name: string }): void {
  if (revert.kind !== "custom" || revert.name !== "InsufficientGas") return;
  throw new UndeterminedError("The facilitator could not simulate the settlement; try again", {
    hints: [`The RPC of ${name} caps the gas of eth_call below what settling needs`],
  });
}

/**
 * Requires a contract and an operator that can settle; otherwise the payment is not at fault.
 *
 * @throws UndeterminedError if the contract is paused, OperatorError if the operator lacks its role
 */
function requireOperable(
  { contractPaused = false, operatorAuthorized = true }: Diagnosis,
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
