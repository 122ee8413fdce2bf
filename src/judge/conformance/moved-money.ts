import { type AskNode, askNode, readSafeInteger } from "../../chain/rpc/calls.ts";
import { RpcUnreachable } from "../../chain/rpc/local-rpc.ts";
import { balanceOf } from "../../chain/views.ts";
import type { Difference, FixtureAnswer, FixtureRequest } from "../../fixtures/engine/answer.ts";
import type { FixtureNetwork } from "../../fixtures/engine/scenario-environment.ts";
import { methodOf, parsePaymentRequest } from "../../methods/methods.ts";
import { noncesOf } from "../../methods/on-chain/nonces.ts";
import { askFact } from "../../methods/on-chain/state-facts.ts";
import { type Address, type Hex, isBytes32, readQuantity, sameAddress } from "../../protocol/hex.ts";
import { addToBuiltIn } from "../../protocol/networks.ts";
import type { Operation } from "../../protocol/problems.ts";
import type { SignedPayment } from "../../protocol/signed-payment.ts";
import { type Rule, rules } from "../../protocol/specification.ts";
import { inParallel } from "../../util/concurrency.ts";
import { KitError } from "../../util/errors.ts";
import { parseJson } from "../../util/json.ts";
import { poll } from "../../util/waiting.ts";
import { expectResult, readTransfers, type Transfer } from "../scene/transfers.ts";
import { memberOf, statusOf, verdictOf } from "./compare.ts";

export type Exchange = { request: FixtureRequest; answer: FixtureAnswer };

/** A fact on chain about a payment that contradicts the facilitator's response. */
export type Contradiction = { difference: Difference; rule: Rule };

/** The chain that payments are made on, seen through an RPC endpoint. */
export type MovedMoney = Awaited<ReturnType<typeof watchMoney>>;

/** The number of concurrent queries to the node. */
const mostQuestions = 8;

/** How long to wait for pending transactions to be mined, and for a node to see what another has seen. */
const longestWaitMs = 10_000;

/** Queries a node without ever throwing an error with its URL, which may hold a key. */
function askWithoutUrl(rpcUrl: string): AskNode {
  const ask = askNode(rpcUrl);
  return async (method, ...params) => {
    try {
      return await ask(method, ...params);
    } catch (error) {
      if (!(error instanceof RpcUnreachable)) throw error;
      throw new KitError("The RPC endpoint gave no answer", { cause: error.cause });
    }
  };
}

/**
 * Begins to watch a chain.
 *
 * @throws {KitError} if the endpoint does not answer, or serves another chain
 */
export async function watchMoney(rpcUrl: string, network: FixtureNetwork) {
  const [asset] = network.assets;
  const ask = askWithoutUrl(rpcUrl);

  const readHead = async () => readQuantity(await expectResult(ask, "eth_blockNumber")) ?? 0n;

  const chainId = readSafeInteger(await expectResult(ask, "eth_chainId"));
  if (chainId !== network.chainId) {
    throw new KitError(`The RPC endpoint is of chain ${chainId}, and ${network.name} is ${network.chainId}`);
  }
  const fromBlock = (await readHead()) + 1n;

  return {
    ask,

    /** The balance of an account, in the asset's smallest unit. */
    async balanceOf(account: Address) {
      const { target: to, data } = balanceOf(asset.address, account);
      return readQuantity(await expectResult(ask, "eth_call", { to, data }, "latest")) ?? 0n;
    },

    /**
     * Finds payments that moved although no settle response said so, and settle responses that claim a transfer which
     * never happened, by the asset's `Transfer` events.
     *
     * @param runs the exchanges of each scenario
     * @returns for each scenario, the contradictions of its responses
     */
    async judge(runs: readonly (readonly Exchange[])[]) {
      const accounts = runs.map((exchanges) => readPayments(exchanges, network));
      const payments = accounts.flat();
      if (payments.length === 0) return runs.map(() => []);
      // Anything broadcast but not awaited is mined in the next block.
      const head = await readHead();
      await waitUntil(async () => (await readHead()) > head);

      const payers = [...new Set(payments.map(({ payment }) => lowerCase(payment.payer)))];
      const isComplete = (transfers: readonly Transfer[]) =>
        payments.every(
          ({ hash }) => hash === undefined || transfers.some((one) => lowerCase(one.transaction) === hash),
        );
      let transfers: Transfer[] = [];
      await waitUntil(async () => {
        const found = await inParallel(payers, mostQuestions, (from) =>
          readTransfers(ask, { from, since: fromBlock, token: asset.address }),
        );
        transfers = found.flat();
        return isComplete(transfers);
      });

      /** Takes the transfer of a payment out of the list, so that it counts for one payment only. */
      function take(matches: (transfer: Transfer) => boolean): Transfer | undefined {
        const index = transfers.findIndex(matches);
        return index < 0 ? undefined : transfers.splice(index, 1)[0];
      }

      const unproven = payments.filter(({ payment, amount, hash }) => {
        if (hash === undefined || amount === 0n) return false;
        return take((one) => lowerCase(one.transaction) === hash && isOf(one, payment, amount)) === undefined;
      });
      const silent = payments.filter(({ hash, isOpen }) => hash === undefined && !isOpen);
      const used = await inParallel(silent, mostQuestions, ({ payment }) =>
        askFact(ask, noncesOf(payment).use),
      );
      const moved = new Map(
        silent
          .filter((_, index) => used[index])
          .map((account) => [account, take((one) => isOf(one, account.payment, account.amount))]),
      );
      return accounts.map((ofRun) =>
        ofRun.flatMap((account): Contradiction[] => {
          if (unproven.includes(account)) return [nothingMoved(account)];
          return moved.has(account) ? [somethingMoved(account, moved.get(account))] : [];
        }),
      );
    },
  };
}

/** Waits until the condition holds, at most `longestWaitMs`. */
async function waitUntil(isThere: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + longestWaitMs;
  const look = async () => ((await isThere()) ? true : undefined);
  await poll(look, { every: 250, until: () => performance.now() > end });
}

function isOf({ from, to, amount: moved }: Transfer, payment: SignedPayment, amount: bigint): boolean {
  return sameAddress(from, payment.payer) && sameAddress(to, payment.payTo) && moved === amount;
}

function lowerCase(hash: Hex): Hex {
  return `0x${hash.slice(2).toLowerCase()}`;
}

/** A payment, and its outcome according to the responses. */
type PaymentAccount = {
  payment: SignedPayment;
  /** The amount that settle should take. */
  amount: bigint;
  /** The hash of the transaction that a settle response named. */
  hash: Hex | undefined;
  /** True if a settle response gave no final verdict, so that either outcome is consistent. */
  isOpen: boolean;
  operation: Operation;
};

/** The payments of a scenario that could be settled on a network. */
function readPayments(exchanges: readonly Exchange[], network: FixtureNetwork): readonly PaymentAccount[] {
  const read = new Map<string, PaymentAccount>();
  for (const { request, answer } of exchanges) {
    const operation = request.path.endsWith("/settle") ? "settle" : "verify";
    const parsed = parsePaymentRequest(parseJson(request.body ?? ""), addToBuiltIn([network]));
    if (!parsed.ok || parsed.request.knownNetwork.name !== network.name) continue;
    const { payment, requirements } = parsed.request;
    const key = `${payment.nonceSpace} ${payment.payer} ${payment.nonce}`.toLowerCase();
    const known = read.get(key);
    const takesLess = operation === "settle" && methodOf(payment).takesLess === true;
    const isNo = verdictOf(answer, operation) === "no" && isFinal(answer);
    const hash = operation === "settle" ? settledHash(answer) : undefined;
    read.set(key, {
      payment,
      amount: takesLess ? requirements.amount : (known?.amount ?? payment.limit),
      hash: known?.hash ?? hash,
      isOpen: known?.isOpen === true || (operation === "settle" && hash === undefined && !isNo),
      operation: known?.operation === "settle" ? "settle" : operation,
    });
  }
  return [...read.values()];
}

/** Returns true if a negative verdict also says that the payment will not settle later. */
function isFinal(answer: FixtureAnswer): boolean {
  return statusOf(answer) === 200 && !/pending/i.test(String(memberOf(answer, "errorReason") ?? ""));
}

function settledHash(answer: FixtureAnswer): Hex | undefined {
  const transaction = memberOf(answer, "transaction");
  const isSuccess = verdictOf(answer, "settle") === "yes" && isBytes32(transaction);
  return isSuccess ? lowerCase(transaction) : undefined;
}

function nothingMoved({ payment, amount, hash }: PaymentAccount): Contradiction {
  const expected = `a transfer of ${amount} from ${payment.payer} to ${payment.payTo}`;
  return { difference: { at: "chain", expected, got: `none in ${hash}` }, rule: rules.settle };
}

function somethingMoved(
  { payment, operation }: PaymentAccount,
  transfer: Transfer | undefined,
): Contradiction {
  const expected =
    operation === "verify" ? "no transfer, since verify moves nothing" : "no transfer, since settle said no";
  const got =
    transfer === undefined
      ? `the payment of ${payment.payer} is used`
      : `${transfer.amount} moved to ${transfer.to} in ${transfer.transaction}`;
  return {
    difference: { at: "chain", expected, got },
    rule: operation === "verify" ? rules.verify : rules.settle,
  };
}
