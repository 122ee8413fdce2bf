import { randomBytes } from "node:crypto";
import { BaseError, bytesToHex, ExecutionRevertedError, encodeFunctionData, parseAbi } from "viem";
import { askNode } from "../../chain/rpc/calls.ts";
import { createHarness, type Harness, type HarnessNetwork } from "../../harness/index.ts";
import { methodNamed, payableNamed, shortNames } from "../../methods/method-lists.ts";
import type { ContractCall } from "../../methods/on-chain/settling.ts";
import { waysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import { mockUsdcInitCode } from "../../payer/init-code.ts";
import type { Address, Hex } from "../../protocol/hex.ts";
import {
  type Asset,
  type Network,
  type NetworkName,
  type NetworkRegistry,
  networks,
} from "../../protocol/networks.ts";
import { KitError } from "../../util/errors.ts";
import { startFacilitatorLine } from "./facilitator-line.ts";
import { type CasePayer, type Offer, postPayment, type ReceivedPayment, stranger } from "./offers.ts";
import { readTransfers, type Transfer } from "./transfers.ts";

/** The price of an offer: a hundredth of the token, such as 0.01 USDC. */
const priceOf = ({ decimals }: Asset) => 10n ** BigInt(Math.max(decimals - 2, 0));

/** Each payer's balance in each token, in multiples of the price; covers the most expensive offer. */
const fundsInPrices = 10_000n;

/** The native balance that an account gets for gas, in wei. */
const gasMoney = 10n ** 18n;

const abi = parseAbi([
  "function mint(address to, uint256 amount) returns (bool)",
  "function approve(address spender, uint256 amount) returns (bool)",
]);

/** A facilitator on local chains, with offers that can be paid there. */
export type Scene = Awaited<ReturnType<typeof openScene>>;

/** The part of a scene that the shops of `judge client` use. It also works without chains. */
export type ShopScene = Pick<
  Scene,
  | "offer"
  | "otherNetwork"
  | "otherAsset"
  | "facilitatorUrl"
  | "apiKey"
  | "studioUrl"
  | "submit"
  | "cancel"
  | "settleAndLoseAnswer"
  | "now"
> & { holdBlocks(): Promise<{ remove(): Promise<void> }> };

export type SceneOptions = {
  network: NetworkName;
  /** All known networks, and the file that defines the custom ones. */
  knownNetworks: NetworkRegistry;
  networkFile?: string | undefined;
  /** The short name of the payment method for all offers; the default one if left out. */
  way?: string | undefined;
  /** True if a second network runs. */
  hasOtherNetwork?: boolean;
  /** How long the facilitator waits for a settlement's outcome. */
  settleWaitMs?: number | undefined;
  /** How far the chain is ahead of the machine's clock, in seconds; negative if behind. */
  aheadSeconds?: number | undefined;
  /** If true, the facilitator serves the studio and reports link to it. */
  studio?: boolean | undefined;
  signal?: AbortSignal | undefined;
};

/** Starts chains and a facilitator for the cases of a run. */
export async function openScene(options: SceneOptions) {
  const {
    network: name,
    knownNetworks,
    networkFile,
    way = shortNames[0] ?? "",
    hasOtherNetwork = false,
    settleWaitMs,
    aheadSeconds = 0,
    studio = false,
    signal,
  } = options;
  const network = requireNetwork(knownNetworks, name);
  const method = methodNamed(way);
  const settling = waysToPay.settlingOf(method.name);
  const other = hasOtherNetwork ? otherThan(name).name : undefined;
  const harness = await createHarness({
    networks: other === undefined ? [name] : [name, other],
    ...(networkFile !== undefined && { networkFile }),
    journal: false,
    // Channels pay to a plain receiver.
    payTo: "recipients",
    studio,
    ...(settleWaitMs !== undefined && { settleWaitMs }),
    // Seeded chains have their own clock, which starts in the past.
    ...(aheadSeconds < 0 && { seed: 1 }),
    ...(signal !== undefined && { signal }),
  });
  const chain = chainOf(harness, name);
  if (aheadSeconds !== 0) {
    const now = Number(await chain.now());
    await chain.advanceTime(Math.floor(Date.now() / 1_000) + aheadSeconds - now);
  }
  const offerOn = ({ name: on, asset, facilitatorContract }: HarnessNetwork): Offer => {
    const { address, name: tokenName, version, decimals } = asset;
    const token = { address, name: tokenName, version, decimals };
    return {
      method,
      network: requireNetwork(knownNetworks, on),
      asset: token,
      amount: priceOf(token),
      payTo: facilitatorContract.address,
      receiver: settling.receiver?.(harness.organization.recipient) ?? facilitatorContract.address,
      facilitator: facilitatorContract.address,
    };
  };
  const chains = Object.values(harness.networks);
  /** The block number of each chain when a payer was funded. */
  const fundedAt = new Map<Address, readonly bigint[]>();
  let otherToken: Promise<Asset> | undefined;

  return {
    network,
    /** The facilitator's base URL; ends in `/v1`. */
    facilitatorUrl: harness.facilitator.url,
    /** The studio's URL; undefined if it is not served. */
    studioUrl: studio ? new URL("/studio", harness.facilitator.url).href : undefined,
    apiKey: harness.organization.apiKey,
    /** The organization's wallet, a possible `payTo` of offers. */
    recipient: harness.organization.recipient,
    /** The RPC endpoint of the network's node. */
    rpcUrl: chain.rpcUrl,
    /** The offer that buyers may accept: USDC on the network, paid to the facilitator contract. */
    offer: offerOn(chain),
    /** The same offer on a second network, where buyers may not pay; undefined if only one network runs. */
    otherNetwork: other === undefined ? undefined : offerOn(chainOf(harness, other)),
    /**
     * Funds a payer with the offered token, and approves it as the payment method requires.
     *
     * @param options.everywhere also on the second network, and with the second token
     * @param options.way the payment method to approve for; that of the scene's offers by default
     */
    async fund(
      payer: CasePayer,
      { everywhere = false, way: ownWay = way }: { everywhere?: boolean; way?: string } = {},
    ) {
      const { spender } = payableNamed(ownWay);
      const { address } = payer;
      fundedAt.set(address, await Promise.all(chains.map(({ client }) => client.getBlockNumber())));
      await Promise.all(
        (everywhere ? chains : [chain]).map(async (one) => {
          const amount = fundsInPrices * priceOf(one.asset);
          await one.fund(address, amount);
          await approve(one, one.asset, { address, amount, spender });
        }),
      );
      if (otherToken === undefined || !everywhere) return;
      const token = await otherToken;
      const amount = fundsInPrices * priceOf(token);
      const minted = encodeFunctionData({ abi, functionName: "mint", args: [address, amount] });
      await send(chain, { to: token.address, data: minted });
      await approve(chain, token, { address, amount, spender });
    },
    /** Every transfer from an account since it was funded, on every chain of the scene. */
    transfersFrom: (account: Address) => transfersOn(chains, account, fundedAt.get(account) ?? []),
    /** A second token on the network, which buyers may not pay with. */
    otherAsset() {
      otherToken ??= deployToken(chain);
      return otherToken;
    },
    /** Calls a contract as an account. Returns undefined if the call reverts. */
    sendAs: (sender: Address, to: Address, data: Hex) => send(chain, { to, data, sender }),
    /** Submits a payment without the facilitator, as anyone who holds it can. Returns undefined if the call reverts. */
    submit: ({ signed }: ReceivedPayment) => settling.submission(signed).then((call) => send(chain, call)),
    /** Cancels a payment as its payer, so that it is used without a transfer. */
    async cancel({ signed }: ReceivedPayment, payer: CasePayer) {
      await send(chain, await settling.cancellation(signed, { ...chain, ...payer }));
    },
    /** Has the facilitator settle a payment, but drops its response. */
    async settleAndLoseAnswer({ signed, body }: ReceivedPayment) {
      await using line = await startFacilitatorLine(harness.facilitator.url);
      line.of(signed.payer).rule = async (passed) => {
        await passed.forwardAndLose();
        return "reset";
      };
      await postPayment("settle", line.url, harness.organization.apiKey, body).catch(() => {});
    },
    now: () => chain.now(),
    /** Moves the chain's time forward. */
    advanceTime: async (seconds: number) => void (await chain.advanceTime(seconds)),
    /** Stops mining until the fault is removed. */
    holdBlocks: () => harness.faults.chain(name).holdBlocks(),
    [Symbol.asyncDispose]: () => harness.close(),
  };
}

function requireNetwork(known: NetworkRegistry, name: NetworkName): Network {
  const network = known.named(name);
  if (network === undefined) throw new KitError(`There is no network ${name}`);
  return network;
}

function chainOf(harness: Harness<NetworkName>, name: NetworkName): HarnessNetwork {
  const chain = harness.networks[name];
  if (chain === undefined) throw new KitError(`${name} is not running`);
  return chain;
}

/** A network other than the given one that public clients of both protocol versions know. */
export function otherThan(network: NetworkName): Network {
  return network === "base" ? networks.polygon : networks.base;
}

/** Deploys a second token on a chain: the USDC mock under another name. */
async function deployToken({ client }: HarnessNetwork): Promise<Asset> {
  const token = { name: "Dollar", version: "2", decimals: 6 };
  await client.setBalance({ address: stranger, value: gasMoney });
  await client.impersonateAccount({ address: stranger });
  const hash = await client.sendTransaction({ account: stranger, data: mockUsdcInitCode(token) });
  const { contractAddress } = await client.waitForTransactionReceipt({ hash });
  if (contractAddress == null) throw new KitError("The second token could not be deployed");
  return { ...token, address: contractAddress };
}

/**
 * Sends a call and waits until it is mined. Returns undefined if the contract reverts. By default each call comes from
 * a new account, since the node may assign the same nonce to two transactions that one account sends at the same time.
 */
async function send(
  { client }: HarnessNetwork,
  { to, data, sender = bytesToHex(randomBytes(20)) }: ContractCall,
): Promise<Hex | undefined> {
  await client.setBalance({ address: sender, value: gasMoney });
  await client.impersonateAccount({ address: sender });
  try {
    const hash = await client.sendTransaction({ account: sender, to, data });
    const { status } = await client.waitForTransactionReceipt({ hash });
    return status === "success" ? hash : undefined;
  } catch (error) {
    // Any other error says nothing about the judged client or shop.
    const isRefused =
      error instanceof BaseError && error.walk((one) => one instanceof ExecutionRevertedError);
    if (isRefused) return undefined;
    throw error;
  }
}

/** Approves a spender, if there is one, for an amount of an account's tokens. */
async function approve(
  chain: HarnessNetwork,
  { address: to }: Pick<Asset, "address">,
  { address: sender, amount, spender }: { address: Address; amount: bigint; spender: Address | undefined },
): Promise<void> {
  if (spender === undefined) return;
  const data = encodeFunctionData({ abi, functionName: "approve", args: [spender, amount] });
  await send(chain, { to, data, sender });
}

export type TokenTransfer = Omit<Transfer, "from"> & { network: NetworkName };

/** Every transfer of any token from an account on any of the networks, in the order of the chains. */
async function transfersOn(
  chains: readonly HarnessNetwork[],
  account: Address,
  since: readonly bigint[],
): Promise<readonly TokenTransfer[]> {
  const found = await Promise.all(
    chains.map(async ({ name: network, rpcUrl }, index) => {
      const transfers = await readTransfers(askNode(rpcUrl), { from: account, since: since[index] ?? 0n });
      return transfers.map(({ from: _, ...transfer }) => ({ network, ...transfer }));
    }),
  );
  return found.flat();
}
