import { readQuantity } from "../chain/read-hex.ts";
import { KitError } from "../errors/base.ts";
import type { Address, Hex } from "../protocol/hex.ts";
import type { Asset, Network } from "../protocol/networks.ts";
import { harnessAccounts } from "./accounts.ts";
import { type CarriedContract, runConstructor } from "./carry.ts";
import { castCode, castContracts, castTokenCalls, mintCall } from "./cast.ts";
import { facilitatorInitCode, mockUsdcInitCode } from "./init-code.ts";
import type { LocalCall } from "./local-rpc.ts";
import type { LocalNode } from "./nodes.ts";

/** A local chain with everything in place. Chain time is unix seconds; amounts are in the asset's smallest unit. */
export type HarnessChain = {
  readonly network: Network;
  readonly rpcUrl: string;
  readonly facilitatorContract: Address;
  readonly asset: Asset;
  readonly node: LocalNode;
  /** Gives an account more of the asset. Resolves when that is mined. */
  fund(account: Address, amount: bigint): Promise<void>;
  /** Sets an account's native balance, in wei. */
  setBalance(account: Address, wei: bigint): Promise<void>;
  /** Mines blocks at once; one by default. */
  mine(blocks?: number): Promise<void>;
  /**
   * Moves the chain's time forward and mines, so that `latest` is at the new time at once; time goes on from there.
   * Gives the new time.
   */
  advanceTime(seconds: number): Promise<bigint>;
  /** The time of the newest block. */
  now(): Promise<bigint>;
};

export type ChainOptions = {
  network: Network;
  facilitatorContract: Address;
  asset: Asset;
  node: LocalNode;
};

const { treasury, operator, admin, recoverer, pauser } = harnessAccounts;

/** Native gas money of each account of the harness that sends transactions: 10,000 whole coins. */
const gasMoney = `0x${(10_000n * 10n ** 18n).toString(16)}`;

/** Gas for one call of the mock token, of which none takes more than 80,000. */
const tokenCallGas = "0x186a0";

/** Puts contracts, accounts and payers in place on a node that has just been started. */
export async function prepareChain(options: ChainOptions): Promise<HarnessChain> {
  const { network, facilitatorContract, asset, node } = options;
  const contracts: readonly CarriedContract[] = [
    { name: "X402Facilitator", address: facilitatorContract, initCode: facilitatorInitCode() },
    { name: "MockUSDC", address: asset.address, initCode: mockUsdcInitCode(asset) },
    ...castContracts(),
  ];
  const writes = await Promise.all(contracts.map((contract) => runConstructor(node, contract)));
  await node.batch([
    ...writes.flat(),
    ...castCode(),
    ...[treasury, operator, admin, recoverer, pauser].map(
      ({ address }): LocalCall => ["anvil_setBalance", address, gasMoney],
    ),
    // So that the node takes unsigned transactions of the token's owner.
    ["anvil_impersonateAccount", treasury.address],
  ]);
  await sendFromTreasury(node, asset.address, castTokenCalls(asset), 0);

  // One at a time: anvil can strand transactions of one sender that race.
  let lastFunding: Promise<void> = Promise.resolve();

  return {
    network,
    rpcUrl: node.rpcUrl,
    facilitatorContract,
    asset,
    node,
    fund(account, amount) {
      const funding = lastFunding.then(() =>
        sendFromTreasury(node, asset.address, [mintCall(account, amount)]),
      );
      lastFunding = funding.catch(() => {});
      return funding;
    },
    async setBalance(account, wei) {
      await node.request("anvil_setBalance", account, `0x${wei.toString(16)}`);
    },
    async mine(blocks = 1) {
      await node.request("anvil_mine", `0x${blocks.toString(16)}`);
    },
    async advanceTime(seconds) {
      if (!Number.isSafeInteger(seconds) || seconds < 0) {
        throw new KitError(`Time moves forward by whole seconds, not by ${seconds}`);
      }
      await node.request("evm_increaseTime", seconds);
      await node.request("evm_mine");
      return readHeadTime(node);
    },
    now: () => readHeadTime(node),
  };
}

/**
 * Sends calls to the token as its owner and mines them. Several at once need their first nonce: the node gives two
 * transactions that come together the same one.
 */
async function sendFromTreasury(
  node: LocalNode,
  token: Address,
  calls: readonly Hex[],
  firstNonce?: number,
): Promise<void> {
  const hashes = await node.batch(
    calls.map((data, index) => {
      const nonce = firstNonce === undefined ? {} : { nonce: `0x${(firstNonce + index).toString(16)}` };
      return [
        "eth_sendTransaction",
        { from: treasury.address, to: token, data, gas: tokenCallGas, ...nonce },
      ];
    }),
  );
  // The node mines a transaction when it comes, but now and then misses one: the next block takes it along.
  await node.request("evm_mine");
  const receipts = await node.batch(hashes.map((hash) => ["eth_getTransactionReceipt", hash]));
  for (const receipt of receipts) {
    if (!succeeded(receipt)) {
      throw new KitError(`A call to the token on ${node.name} failed`, { hints: [JSON.stringify(receipt)] });
    }
  }
}

function succeeded(receipt: unknown): boolean {
  return typeof receipt === "object" && receipt !== null && "status" in receipt && receipt.status === "0x1";
}

async function readHeadTime(node: LocalNode): Promise<bigint> {
  const block = await node.request("eth_getBlockByNumber", "latest", false);
  const timestamp =
    typeof block === "object" && block !== null && "timestamp" in block
      ? readQuantity(block.timestamp)
      : undefined;
  if (timestamp === undefined) throw new KitError(`The ${node.name} node gave no newest block`);
  return timestamp;
}
