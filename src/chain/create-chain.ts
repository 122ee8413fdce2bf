import { setTimeout as delay } from "node:timers/promises";
import type { NetworkConfig } from "../config/network-config.ts";
import { UndeterminedError } from "../errors/undetermined.ts";
import { type Address, addressWord, type Hex, keccak256Text } from "../protocol/hex.ts";
import { encodeIsValidSignature, isValidSignatureSelector, selector } from "./calldata.ts";
import type { Chain, SettleCall } from "./chain.ts";
import { headCall, readHead } from "./head.ts";
import { createHttpRpc } from "./http-rpc.ts";
import { describeError } from "./json-rpc.ts";
import { type Probe, type ProbeResult, probeCall, readProbes } from "./probe.ts";
import { isBytes, readQuantity } from "./read-hex.ts";
import { readReceipt } from "./receipt.ts";
import { decodeRevert, type Revert } from "./revert.ts";
import { readRevertData } from "./revert-data.ts";
import type { RpcAnswer, RpcCall } from "./rpc.ts";
import { settleTransaction } from "./transaction.ts";

export type ChainOptions = {
  network: NetworkConfig;
  /** Simulations run as from this account: only operators may settle. */
  operator: Address;
  /** Milliseconds for one request to a node; 10 s by default. */
  timeoutMs?: number;
  /** Calls in one request to a node; 100 by default. */
  maxBatch?: number;
};

const operatorRole = keccak256Text("OPERATOR_ROLE");
const balanceOf = selector("balanceOf(address)");
const authorizationState = selector("authorizationState(address,bytes32)");
const isBlacklisted = selector("isBlacklisted(address)");
const paused = selector("paused()");
const hasRole = selector("hasRole(bytes32,address)");
const domainSeparator = selector("DOMAIN_SEPARATOR()");
/** What a wallet answers to say yes: the selector that it was asked by (EIP-1271). */
const walletYes = `${isValidSignatureSelector}${"0".repeat(56)}`;

/** What the facilitator contract gives a token for a pull (PULL_GAS), and so a wallet at most for its check. */
const walletGas = 250_000;

/** How often calls are asked before a refusal of one of them is believed. */
const maxAsks = 6;

/** The pause before the second time, in milliseconds; it grows by as much each time. */
const askAgainMs = 3;

/** More than any of the state a diagnosis reads can cost, behind a proxy too. */
const readGas = 100_000;

/**
 * A network's chain by JSON-RPC. Everything one method asks goes out as one batch, and what is asked at the same
 * time shares it.
 *
 * Nothing a node says is trusted to be well formed, and no error text of a node decides anything.
 */
export function createChain(options: ChainOptions): Chain {
  const { network, operator } = options;
  const { facilitatorContract } = network;
  const rpc = createHttpRpc({
    network: network.name,
    chainId: network.chainId,
    urls: network.rpcUrls,
    ...(options.timeoutMs !== undefined && { timeoutMs: options.timeoutMs }),
    ...(options.maxBatch !== undefined && { maxBatch: options.maxBatch }),
  });

  /** One object for all: what is asked at the same time is asked once. */
  const gasMoneyCall: RpcCall = { method: "eth_getBalance", params: [operator, "latest"] };

  function undetermined(what: string): UndeterminedError {
    return new UndeterminedError(`${network.name} gave no usable answer; try again`, {
      cause: new Error(what),
      hints: [`An RPC endpoint of ${network.name}: ${what}`],
    });
  }

  /**
   * Reads, again where a node refuses a single call for another reason than a revert: a node that moves on to the
   * next block in the middle of a batch may say that it does not know the last one any more.
   */
  async function ask(calls: readonly RpcCall[]): Promise<readonly RpcAnswer[]> {
    for (let attempt = 1; ; attempt++) {
      const answers = await rpc.ask(calls);
      const refused = answers.some(({ error }) => error !== undefined && readRevertData(error) === undefined);
      if (!refused || attempt === maxAsks) return answers;
      await delay(attempt * askAgainMs);
    }
  }

  /** Reads an answer with a reader that gives undefined for what it cannot read. */
  function expect<T>(
    what: string,
    answer: RpcAnswer | undefined,
    read: (result: unknown) => T | undefined,
  ): T {
    if (answer?.error !== undefined) throw undetermined(`${what}: ${describeError(answer.error)}`);
    const value = read(answer?.result);
    if (value === undefined) throw undetermined(`${what}: the answer is malformed`);
    return value;
  }

  function expectWord(what: string, probe: ProbeResult | undefined): Hex {
    if (probe?.word === undefined)
      throw undetermined(`${what}: no such contract, or it has no such function`);
    return probe.word;
  }

  /** Asks for the payer's balance, and for the block that it is the balance of. */
  function balanceCall({ asset, authorization }: SettleCall): RpcCall {
    return probeCall([{ target: asset, data: `${balanceOf}${addressWord(authorization.from)}` }], readGas);
  }

  async function probe(probes: readonly Probe[], gasEach: number): Promise<readonly ProbeResult[]> {
    const [answer] = await ask([probeCall(probes, gasEach)]);
    return expect("eth_call", answer, (result) => readProbes(result, probes.length)).results;
  }

  /** Why a simulated `settle` reverted; undefined when it went through. */
  function readSimulation(answer: RpcAnswer | undefined): Revert | undefined {
    const revertData = answer?.error && readRevertData(answer.error);
    if (revertData !== undefined) return decodeRevert(revertData);
    expect("simulating settle", answer, (result) => (isBytes(result) ? result : undefined));
    return undefined;
  }

  return {
    network,

    async simulateSettle(call, { withFunds }) {
      const { data, gas } = settleTransaction([call]);
      const transaction = { from: operator, to: facilitatorContract, data, gas: `0x${gas.toString(16)}` };
      const calls: RpcCall[] = [headCall, { method: "eth_call", params: [transaction, "latest"] }];
      if (withFunds) calls.push(balanceCall(call), gasMoneyCall);
      const [block, simulation, payerBalance, operatorBalance] = await ask(calls);
      const head = expect("the newest block", block, readHead);
      const revert = readSimulation(simulation);
      if (!withFunds) return { head, funds: undefined, revert };

      const { blockNumber, results } = expect("the payer's balance", payerBalance, (result) =>
        readProbes(result, 1),
      );
      return {
        // The calls of a batch may see different blocks, and those behind a balancer different nodes.
        head: blockNumber < head.number ? { ...head, number: blockNumber } : head,
        funds: {
          payer: BigInt(expectWord("balanceOf of the asset", results[0])),
          operator: expect("the operator's balance", operatorBalance, readQuantity),
        },
        revert,
      };
    },

    async askWallet(payer, digest, signature) {
      const data = encodeIsValidSignature(digest, signature);
      const [wallet] = await probe([{ target: payer, data }], walletGas);
      if (!wallet?.hasCode) return "no_code";
      return wallet.word === walletYes ? "accepted" : "refused";
    },

    async diagnose({ asset, authorization, recipient }) {
      const { from: payer, nonce } = authorization;
      const [
        authorizationUsed,
        balance,
        payerBlacklisted,
        recipientBlacklisted,
        contractBlacklisted,
        tokenPaused,
        contractPaused,
        operatorAuthorized,
      ] = await probe(
        [
          { target: asset, data: `${authorizationState}${addressWord(payer)}${nonce.slice(2)}` },
          { target: asset, data: `${balanceOf}${addressWord(payer)}` },
          { target: asset, data: `${isBlacklisted}${addressWord(payer)}` },
          { target: asset, data: `${isBlacklisted}${addressWord(recipient)}` },
          { target: asset, data: `${isBlacklisted}${addressWord(facilitatorContract)}` },
          { target: asset, data: paused },
          { target: facilitatorContract, data: paused },
          { target: facilitatorContract, data: `${hasRole}${operatorRole.slice(2)}${addressWord(operator)}` },
        ],
        readGas,
      );
      return {
        authorizationUsed: isTrue(expectWord("authorizationState of the asset", authorizationUsed)),
        balance: BigInt(expectWord("balanceOf of the asset", balance)),
        payerBlacklisted: isTrue(payerBlacklisted?.word),
        recipientBlacklisted: isTrue(recipientBlacklisted?.word),
        contractBlacklisted: isTrue(contractBlacklisted?.word),
        tokenPaused: isTrue(tokenPaused?.word),
        contractPaused: isTrue(expectWord("paused of the facilitator contract", contractPaused)),
        operatorAuthorized: isTrue(expectWord("hasRole of the facilitator contract", operatorAuthorized)),
      };
    },

    async head() {
      const [block] = await ask([headCall]);
      return expect("the newest block", block, readHead);
    },

    async transactionCount(account) {
      const [count] = await ask([{ method: "eth_getTransactionCount", params: [account, "latest"] }]);
      return expect("the number of an account's transactions", count, readSafeInteger);
    },

    async broadcast(rawTransactions) {
      if (rawTransactions.length === 0) return;
      await rpc.send(rawTransactions.map((raw) => ({ method: "eth_sendRawTransaction", params: [raw] })));
    },

    async receipts(hashes) {
      if (hashes.length === 0) return [];
      const answers = await ask(
        hashes.map((hash) => ({ method: "eth_getTransactionReceipt", params: [hash] })),
      );
      // One that cannot be read is not known yet, and keeps nobody from learning the others.
      return hashes.map((hash, index) => readReceipt(answers[index]?.result, hash) ?? null);
    },

    async inspect() {
      const assets = network.assets.map(({ address }) => address);
      const [chainId, code, separators] = await ask([
        { method: "eth_chainId", params: [] },
        { method: "eth_getCode", params: [facilitatorContract, "latest"] },
        probeCall(
          assets.map((target) => ({ target, data: domainSeparator })),
          readGas,
        ),
      ]);
      const { results } = expect("the domain separators", separators, (result) =>
        readProbes(result, assets.length),
      );
      return {
        chainId: expect("the chain id", chainId, readSafeInteger),
        contractCode: expect("the contract's code", code, (result) => (isBytes(result) ? result : undefined)),
        domainSeparators: new Map(assets.map((asset, index) => [asset, results[index]?.word])),
      };
    },
  };
}

function readSafeInteger(result: unknown): number | undefined {
  const value = Number(readQuantity(result) ?? Number.NaN);
  return Number.isSafeInteger(value) ? value : undefined;
}

function isTrue(word: Hex | undefined): boolean {
  return word !== undefined && BigInt(word) !== 0n;
}
