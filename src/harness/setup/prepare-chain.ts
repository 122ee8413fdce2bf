import { setTimeout } from "node:timers/promises";
import { readHeadTime } from "../../chain/rpc/calls.ts";
import { type LocalCall, RpcRefusal } from "../../chain/rpc/local-rpc.ts";
import { longestAdvanceSeconds } from "../../config/serve-config.ts";
import { harnessAccounts } from "../../payer/accounts.ts";
import {
  type LocalTokenName,
  type LocalTokens,
  localGasMoney,
  tokenNamed,
} from "../../payer/local-chains.ts";
import { testPayers } from "../../payer/test-payers.ts";
import { type Address, type Hex, quantity, readQuantity } from "../../protocol/hex.ts";
import type { Asset, Network } from "../../protocol/networks.ts";
import { createSerialQueue, type InTurn } from "../../util/concurrency.ts";
import { KitError } from "../../util/errors.ts";
import { membersOf } from "../../util/json.ts";
import type { LocalNode } from "../nodes/nodes.ts";
import { planLocalDeployment } from "./addresses.ts";
import { createMining } from "./mining.ts";
import {
  missingContractCode,
  mockAllowanceSlot,
  mockToken,
  type PlacedContract,
  publicContractCode,
  runConstructors,
  runConstructorsOnce,
} from "./place-contract.ts";
import {
  localApprovalWrite,
  localTokenContracts,
  localTokensBeside,
  localTokenWrites,
  prepareRealToken,
} from "./prepare-tokens.ts";
import { isRealToken } from "./start-fork.ts";
import { type ChainMark, clock, takeStartingPoint } from "./starting-point.ts";
import {
  approvalWrites,
  mintCall,
  testAccountContracts,
  testAccountTokenCalls,
  transferCall,
  walletCode,
  writeApprovals,
} from "./test-accounts.ts";

/** A fully set-up local chain. Chain time is in unix seconds; amounts are in the asset's smallest unit. */
export type HarnessChain = Awaited<ReturnType<typeof prepareChain>>;

/** The saved state of a chain. */
export type SavedChain = {
  /** The result of `anvil_dumpState`: accounts, contracts, storage, blocks and transactions. */
  state: string;
  /** How many seconds its time was ahead of this machine's clock. */
  ahead: number;
};

export type LocalChainOptions = {
  network: Network;
  facilitatorContract: Address;
  asset: Asset;
  node: LocalNode;
  /** The URL at which users reach the node. */
  publicRpcUrl: string;
  /** True if the chain has its own clock instead of this machine's. */
  ownClock?: boolean;
  /** The state that the chain continues from. */
  saved?: SavedChain | undefined;
};

const { treasury, operator, admin, recoverer, pauser, sponsor } = harnessAccounts;
const { sponsored, approvedShort } = testPayers;
const senders = [treasury, operator, admin, recoverer, pauser, sponsor, sponsored, approvedShort];

/** How long a node with automine may take to mine a transaction, usually 2 ms. After that, it has missed it. */
const minedWithinMs = 500;

/** The gas limit of a token call; none uses more than 100,000. */
const tokenCallGas = "0x249f0";

/** Loads a saved state. Its error omits the node's message, which repeats the whole state and may be megabytes long. */
async function load(node: LocalNode, { state }: SavedChain): Promise<void> {
  try {
    await node.request("anvil_loadState", state);
  } catch (error) {
    if (!(error instanceof RpcRefusal)) throw error;
    throw new KitError(`The saved state of the ${node.name} chain cannot be loaded`, {
      hints: ["It is damaged, or another version has saved it: use that one, or begin anew."],
    });
  }
}

/** Sets up contracts, accounts and payers on a node that has just been started. */
export async function prepareChain(options: LocalChainOptions) {
  const { network, facilitatorContract, asset, node, publicRpcUrl, ownClock = false, saved } = options;
  const realToken = node.fork !== undefined && isRealToken(network, asset);
  // A fork already has its network's tokens.
  const tokens = node.fork === undefined ? localTokensBeside(asset) : {};
  const hasBlacklist = await placeEverything(options, { realToken, tokens });
  if (saved !== undefined) await load(node, saved);
  const { ahead = 0 } = saved ?? {};
  let hasMovedTime = false;
  const start = await takeStartingPoint(node, { impersonated: treasury.address, ownClock, ahead });
  const mining = createMining(node, { ownClock });

  // One at a time: if transactions of one sender race, anvil can leave some of them stuck.
  const inTurn = createSerialQueue();

  /** Runs work while neither the heartbeat nor the queue sends anything to the node. */
  async function whileStill<T>(work: () => Promise<T>): Promise<T> {
    await Promise.all([mining.pause(), inTurn(async () => {})]);
    try {
      return await work();
    } finally {
      mining.resume();
    }
  }

  return {
    network,
    /** The node's own URL. It answers everybody, so only the harness and its service may know it. */
    rpcUrl: node.rpcUrl,
    /** The URL at which users reach the node, through its gate. */
    publicRpcUrl,
    facilitatorContract,
    asset,
    /** Further accepted tokens; none on a fork. */
    tokens,
    /** True if the token has a blacklist. On a fork it may not; the payer `blacklisted` then pays like any other. */
    hasBlacklist,
    node,
    /** The transaction counts of the service's accounts at the start. */
    mined: start.mined,
    ...tokenActions({ asset, tokens }, { node, realToken, inTurn, mining }),
    /** Sets an account's native balance, in wei. */
    async setBalance(account: Address, wei: bigint) {
      await node.request("anvil_setBalance", account, `0x${wei.toString(16)}`);
    },
    ...mining.control,
    /**
     * Moves the chain's time forward and mines a block, so that `latest` has the new time immediately. Time continues from
     * there. Returns the new time.
     */
    async advanceTime(seconds: number): Promise<bigint> {
      if (!Number.isSafeInteger(seconds) || seconds < 1 || seconds > longestAdvanceSeconds) {
        throw new KitError(
          `Time moves forward by 1 to ${longestAdvanceSeconds} whole seconds, not by ${seconds}`,
        );
      }
      hasMovedTime = true;
      // With a fixed block interval, anvil ignores an offset to the clock.
      if (ownClock) {
        await node.request(
          "evm_setNextBlockTimestamp",
          Number(await readHeadTime(node, node.name)) + seconds,
        );
      } else {
        await node.request("evm_increaseTime", seconds);
      }
      await mining.mineBlocks(1);
      return readHeadTime(node, node.name);
    },
    now: () => readHeadTime(node, node.name),
    /** Runs work that sets the node's clock back, such as a reorganization, and corrects the clock afterwards. */
    async keepTime<T>(work: () => Promise<T>): Promise<T> {
      const ahead = ownClock ? undefined : await readAhead(node);
      try {
        return await work();
      } finally {
        if (ahead !== undefined) await node.request("evm_setTime", clock() + ahead);
      }
    },
    /**
     * Tells since when the chain's time may differ from this machine's: `started` if it was already ahead when loaded,
     * `moved` after `advanceTime`, otherwise undefined.
     */
    ownClockSince: () => (ahead > 0 ? "started" : hasMovedTime ? "moved" : undefined),
    /**
     * Resets the chain to its start: accounts, contracts, blocks, pool, mining, fees and clock. Nothing may be sent to it
     * meanwhile.
     */
    async reset() {
      mining.forget();
      const mined = await whileStill(start.restore);
      hasMovedTime = false;
      return mined;
    },
    /** Takes a snapshot of the chain. It is lost when the chain is restored to an older one. */
    async mark(): Promise<ChainMark> {
      const { restore } = await whileStill(start.mark);
      return { restore: () => whileStill(restore) };
    },
    /** The block number of the latest snapshot or restore. Without that block, the chain could not be restored. */
    newestMark: start.newestMark,
    /** Returns the current state, for another chain to continue from. */
    save: (): Promise<SavedChain> =>
      whileStill(async () => {
        const state = String(await node.request("anvil_dumpState"));
        const time = Number(await readHeadTime(node, node.name));
        return { state, ahead: Math.max(0, time - clock()) };
      }),
  };
}

/** The actions that give accounts tokens and approvals. */
function tokenActions(
  all: { asset: Asset; tokens: LocalTokens },
  { node, realToken, inTurn, mining }: TokenMeans,
) {
  return {
    /** Gives an account more of the asset, or of another token. Resolves when mined. */
    fund: (account: Address, amount: bigint, token?: LocalTokenName) =>
      inTurn(async () => {
        const data = realToken ? transferCall(account, amount) : mintCall(account, amount);
        const { address: to } = tokenNamed(all, token);
        try {
          // Simulate first, so that a failing transfer is not mined.
          await node.request("eth_call", { from: treasury.address, to, data }, "latest");
        } catch (cause) {
          if (!(cause instanceof RpcRefusal)) throw cause;
          throw new KitError(
            `${account} cannot be given ${amount} more of ${token ?? "the asset"} on ${node.name}`,
            { cause },
          );
        }
        await sendFromTreasury(node, to, data);
      }),
    /**
     * Approves Permit2, and all other contracts that payers approve, for an amount of an account's tokens; 0 revokes it. Like
     * the account's own `approve`, but without gas, and for contract wallets too. Resolves when mined.
     */
    approvePermit2: (account: Address, amount: bigint, token?: LocalTokenName) =>
      inTurn(async () => {
        const { address } = tokenNamed(all, token);
        await (token === undefined
          ? writeApprovals(node, address, [[account, amount]])
          : node.batch(localApprovalWrite(address, account, amount)));
        await mining.mineUnlessHeld();
      }),
  };
}

type TokenMeans = {
  node: LocalNode;
  /** True if the asset is the network's real token, which nobody can mint. */
  realToken: boolean;
  inTurn: InTurn;
  mining: ReturnType<typeof createMining>;
};

/** Returns how many seconds a node's time is ahead of this machine's. Exact to the second unless the node is too slow. */
async function readAhead(node: LocalNode): Promise<number> {
  for (let tries = 1; ; tries++) {
    const second = clock();
    const pending = membersOf(await node.request("eth_getBlockByNumber", "pending", false));
    if (clock() === second || tries === 20) return Number(readQuantity(pending.timestamp) ?? second) - second;
  }
}

/** Sets up the contracts, the harness's accounts and the tokens. Returns true if the asset has a blacklist. */
async function placeEverything(
  { network, facilitatorContract, asset, node }: LocalChainOptions,
  { realToken, tokens }: { realToken: boolean; tokens: LocalTokens },
): Promise<boolean> {
  const contracts: readonly PlacedContract[] = [
    {
      name: "X402Facilitator",
      address: facilitatorContract,
      initCode: planLocalDeployment(network.tier).initCode,
    },
    ...(realToken ? [] : [mockToken(asset)]),
    ...testAccountContracts(),
    ...localTokenContracts(tokens),
  ];
  await node.batch([
    ...(await (node.fork === undefined
      ? runConstructorsOnce(node, network.chainId, contracts)
      : runConstructors(node, contracts))),
    ...walletCode(),
    ...(await (node.fork === undefined ? publicContractCode(asset) : missingContractCode(node, asset))),
    ...(realToken ? [] : approvalWrites(asset.address, mockAllowanceSlot)),
    ...localTokenWrites(tokens),
    // Gas money for the service's accounts, and for payers who attach a transaction.
    ...senders.map(({ address }): LocalCall => ["anvil_setBalance", address, quantity(localGasMoney)]),
    // Makes the node accept unsigned transactions from the token's owner.
    ["anvil_impersonateAccount", treasury.address],
  ]);
  const { hasBlacklist } = realToken
    ? await prepareRealToken(node, network, asset)
    : await prepareMockToken(node, asset);
  return hasBlacklist;
}

async function prepareMockToken(node: LocalNode, asset: Asset): Promise<{ hasBlacklist: boolean }> {
  const hashes = await sendAsTreasury(node, asset.address, testAccountTokenCalls(asset), 0);
  // The node does not mine automatically yet.
  await node.request("evm_mine");
  requireSuccess(node, await readReceipts(node, hashes));
  return { hasBlacklist: true };
}

/** Sends a call to the token as its owner. Resolves when mined. */
async function sendFromTreasury(node: LocalNode, token: Address, data: Hex): Promise<void> {
  const hashes = await sendAsTreasury(node, token, [data]);
  requireSuccess(node, await minedReceipts(node, hashes));
}

/**
 * Sends calls to the token as its owner and returns their hashes. Several at once need `firstNonce`: the node would give
 * transactions that arrive together the same nonce.
 */
function sendAsTreasury(
  node: LocalNode,
  token: Address,
  calls: readonly Hex[],
  firstNonce?: number,
): Promise<readonly unknown[]> {
  return node.batch(
    calls.map((data, index) => {
      const nonce = firstNonce === undefined ? {} : { nonce: `0x${(firstNonce + index).toString(16)}` };
      return [
        "eth_sendTransaction",
        { from: treasury.address, to: token, data, gas: tokenCallGas, ...nonce },
      ];
    }),
  );
}

function requireSuccess(node: LocalNode, receipts: readonly unknown[]): void {
  for (const receipt of receipts) {
    if (membersOf(receipt).status !== "0x1") {
      throw new KitError(`A call to the token on ${node.name} failed`, { hints: [JSON.stringify(receipt)] });
    }
  }
}

const readReceipts = (node: LocalNode, hashes: readonly unknown[]) =>
  node.batch(hashes.map((hash) => ["eth_getTransactionReceipt", hash]));

/**
 * Waits for the receipts of transactions that were just sent. The node usually mines them immediately, but sometimes misses
 * one, and mines none while mining is held. A block is mined for them then.
 */
async function minedReceipts(node: LocalNode, hashes: readonly unknown[]): Promise<readonly unknown[]> {
  const until = performance.now() + minedWithinMs;
  while ((await node.request("anvil_getAutomine")) === true && performance.now() < until) {
    const receipts = await readReceipts(node, hashes);
    if (!receipts.includes(null)) return receipts;
    await setTimeout(1);
  }
  await node.request("evm_mine");
  return readReceipts(node, hashes);
}
