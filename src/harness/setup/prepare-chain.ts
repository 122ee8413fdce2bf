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

/** A local chain with everything in place. Chain time is unix seconds; amounts are in the asset's smallest unit. */
export type HarnessChain = Awaited<ReturnType<typeof prepareChain>>;

/** A chain that has ended. */
export type SavedChain = {
  /** The result of `anvil_dumpState`: accounts, contracts, storage, blocks and transactions. */
  state: string;
  /** How many seconds its time was ahead of this machine's. */
  ahead: number;
};

export type LocalChainOptions = {
  network: Network;
  facilitatorContract: Address;
  asset: Asset;
  node: LocalNode;
  /** Where users reach the node. */
  publicRpcUrl: string;
  /** True if the chain's time is its own, and not this machine's. */
  ownClock?: boolean;
  /** The state that the chain continues from. */
  saved?: SavedChain | undefined;
};

const { treasury, operator, admin, recoverer, pauser, sponsor } = harnessAccounts;
const { sponsored, approvedShort } = testPayers;
const senders = [treasury, operator, admin, recoverer, pauser, sponsor, sponsored, approvedShort];

/** How long a node that mines at once may take for a transaction, usually 2 ms. After that, it has missed it. */
const minedWithinMs = 500;

/** Gas for one call of the token, of which none takes more than 100,000. */
const tokenCallGas = "0x249f0";

/** Loads a saved state. Omits the node's error, which repeats the state and may have megabytes. */
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

/** Puts contracts, accounts and payers in place on a node that has just been started. */
export async function prepareChain(options: LocalChainOptions) {
  const { network, facilitatorContract, asset, node, publicRpcUrl, ownClock = false, saved } = options;
  const realToken = node.fork !== undefined && isRealToken(network, asset);
  // A fork has the tokens of its network.
  const tokens = node.fork === undefined ? localTokensBeside(asset) : {};
  const hasBlacklist = await placeEverything(options, { realToken, tokens });
  if (saved !== undefined) await load(node, saved);
  const { ahead = 0 } = saved ?? {};
  let hasMovedTime = false;
  const start = await takeStartingPoint(node, { impersonated: treasury.address, ownClock, ahead });
  const mining = createMining(node, { ownClock });

  // One at a time: anvil can strand transactions of one sender that race.
  const inTurn = createSerialQueue();

  /** Works while neither the heartbeat nor this sends anything. */
  async function whileStill<T>(work: () => Promise<T>): Promise<T> {
    await Promise.all([mining.pause(), inTurn(async () => {})]);
    const done = await work();
    mining.resume();
    return done;
  }

  return {
    network,
    /** Where the node listens. It answers everybody, so this is for the harness and its service alone. */
    rpcUrl: node.rpcUrl,
    /** Where users reach the node, through its gate. */
    publicRpcUrl,
    facilitatorContract,
    asset,
    /** The accepted assets besides; nothing on a fork. */
    tokens,
    /** True if the token knows a blacklist. On a fork it may not: then the payer `blacklisted` pays as others do. */
    hasBlacklist,
    node,
    /** As it began. */
    mined: start.mined,
    ...tokenActions({ asset, tokens }, { node, realToken, inTurn, mining }),
    /** Sets an account's native balance, in wei. */
    async setBalance(account: Address, wei: bigint) {
      await node.request("anvil_setBalance", account, `0x${wei.toString(16)}`);
    },
    ...mining.control,
    /**
     * Moves the chain's time forward and mines, so that `latest` is at the new time at once; time goes on from there.
     * Gives the new time.
     */
    async advanceTime(seconds: number): Promise<bigint> {
      if (!Number.isSafeInteger(seconds) || seconds < 1 || seconds > longestAdvanceSeconds) {
        throw new KitError(
          `Time moves forward by 1 to ${longestAdvanceSeconds} whole seconds, not by ${seconds}`,
        );
      }
      hasMovedTime = true;
      // Where blocks have fixed distances, an offset to the clock is not looked at.
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
    /** Does what sets the node's time back, as replacing blocks does; then it is what it would have been without that. */
    async keepTime<T>(work: () => Promise<T>): Promise<T> {
      const ahead = ownClock ? undefined : await readAhead(node);
      try {
        return await work();
      } finally {
        if (ahead !== undefined) await node.request("evm_setTime", clock() + ahead);
      }
    },
    /** Since when it may have another time than this machine's: since its start where it was saved with one. */
    ownClockSince: () => (ahead > 0 ? "started" : hasMovedTime ? "moved" : undefined),
    /**
     * Puts the chain back to its start: accounts, contracts, blocks, pool, mining, fees, and the time to the clock's.
     * Nothing may be sent to it meanwhile.
     */
    async reset() {
      mining.forget();
      const mined = await whileStill(start.restore);
      hasMovedTime = false;
      return mined;
    },
    /** Remembers the chain as it is now, until it is put back further. */
    async mark(): Promise<ChainMark> {
      const { restore } = await whileStill(start.mark);
      return { restore: () => whileStill(restore) };
    },
    /** The number of the block at which it was remembered, or put back, at last: without that, it could not be put back. */
    newestMark: start.newestMark,
    /** The chain as it is now, for another one to go on with. */
    save: (): Promise<SavedChain> =>
      whileStill(async () => {
        const state = String(await node.request("anvil_dumpState"));
        const time = Number(await readHeadTime(node, node.name));
        return { state, ahead: Math.max(0, time - clock()) };
      }),
  };
}

/** Gives tokens to accounts, and approves for them what payers approve. */
function tokenActions(
  all: { asset: Asset; tokens: LocalTokens },
  { node, realToken, inTurn, mining }: TokenMeans,
) {
  return {
    /** Gives an account more of the asset, or of another token. Resolves when that is mined. */
    fund: (account: Address, amount: bigint, token?: LocalTokenName) =>
      inTurn(async () => {
        const data = realToken ? transferCall(account, amount) : mintCall(account, amount);
        const { address: to } = tokenNamed(all, token);
        try {
          // Whether it can be, before it is mined.
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
     * Has an account let Permit2, and whatever else payers approve, take so much of its tokens; 0 withdraws that. As its own
     * `approve` would, without gas, and for a contract wallet too. Resolves when it is mined.
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
  /** True if the asset is the network's own, which nobody can mint. */
  realToken: boolean;
  inTurn: InTurn;
  mining: ReturnType<typeof createMining>;
};

/** How many seconds a node's time is ahead of this machine's: read within one second of it, unless the node is too slow. */
async function readAhead(node: LocalNode): Promise<number> {
  for (let tries = 1; ; tries++) {
    const second = clock();
    const pending = membersOf(await node.request("eth_getBlockByNumber", "pending", false));
    if (clock() === second || tries === 20) return Number(readQuantity(pending.timestamp) ?? second) - second;
  }
}

/** Contracts, the accounts of the harness, and the tokens; whether the asset has a blacklist. */
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
    // Those who send a transaction along can pay for it.
    ...senders.map(({ address }): LocalCall => ["anvil_setBalance", address, quantity(localGasMoney)]),
    // So that the node takes unsigned transactions of the token's owner.
    ["anvil_impersonateAccount", treasury.address],
  ]);
  const { hasBlacklist } = realToken
    ? await prepareRealToken(node, network, asset)
    : await prepareMockToken(node, asset);
  return hasBlacklist;
}

async function prepareMockToken(node: LocalNode, asset: Asset): Promise<{ hasBlacklist: boolean }> {
  const hashes = await sendAsTreasury(node, asset.address, testAccountTokenCalls(asset), 0);
  // It mines nothing by itself yet.
  await node.request("evm_mine");
  requireSuccess(node, await readReceipts(node, hashes));
  return { hasBlacklist: true };
}

/** Sends a call to the token as its owner. Resolves when it is mined. */
async function sendFromTreasury(node: LocalNode, token: Address, data: Hex): Promise<void> {
  const hashes = await sendAsTreasury(node, token, [data]);
  requireSuccess(node, await minedReceipts(node, hashes));
}

/**
 * Sends calls to the token as its owner; gives their hashes. Several at once need their first nonce: the node gives two
 * transactions that come together the same one.
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
 * The receipts of transactions that were just sent. The node mines them as they come, but now and then misses one, and
 * none where mining is held: then a block is mined for them.
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
