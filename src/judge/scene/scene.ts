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

/** The price of a shop: a hundredth of the token, 0.01 USDC. */
const priceOf = ({ decimals }: Asset) => 10n ** BigInt(Math.max(decimals - 2, 0));

/** Each payer's balance in each token, in multiples of the price: enough for the most expensive offer. */
const fundsInPrices = 10_000n;

/** The native coins, in wei, that an account gets for gas. */
const gasMoney = 10n ** 18n;

const abi = parseAbi([
  "function mint(address to, uint256 amount) returns (bool)",
  "function approve(address spender, uint256 amount) returns (bool)",
]);

/** A facilitator on local chains, with offers that can be paid there. */
export type Scene = Awaited<ReturnType<typeof openScene>>;

/** The part of a scene that the shops of `judge client` use. It can be had without chains. */
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
  /** All known networks, and the file with those that are not built in. */
  knownNetworks: NetworkRegistry;
  networkFile?: string | undefined;
  /** How all offers of the scene are paid: the short name of a payment method; the default one if left out. */
  way?: string | undefined;
  /** True if a second network runs. */
  hasOtherNetwork?: boolean;
  /** How long the facilitator waits for an outcome. */
  settleWaitMs?: number | undefined;
  /** Seconds that the chain is ahead of the machine's clock; negative if behind. */
  aheadSeconds?: number | undefined;
  /** True if the facilitator serves the studio, and reports link to it. */
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
    // Channels pay plain receivers.
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
  /** The heads of the chains when payers were funded. */
  const fundedAt = new Map<Address, readonly bigint[]>();
  let otherToken: Promise<Asset> | undefined;

  return {
    network,
    /** The facilitator's base URL; ends in `/v1`. */
    facilitatorUrl: harness.facilitator.url,
    /** The studio's URL; undefined when it is not served. */
    studioUrl: studio ? new URL("/studio", harness.facilitator.url).href : undefined,
    apiKey: harness.organization.apiKey,
    /** The organization's wallet, which offers may name as `payTo`. */
    recipient: harness.organization.recipient,
    /** The network's node. */
    rpcUrl: chain.rpcUrl,
    /** The offer that buyers may take: USDC on the network, to the facilitator contract. */
    offer: offerOn(chain),
    /** The same offer on another running network, which buyers may not pay on; undefined when only one network runs. */
    otherNetwork: other === undefined ? undefined : offerOn(chainOf(harness, other)),
    /**
     * Gives a payer money of the token that is asked for, approved as the payment method needs it.
     *
     * @param options.everywhere also on the other network, and of the other token
     * @param options.way how it will pay; as the offers of the scene ask by default
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
    /** Every transfer from an account, on every chain of the scene, since it was funded. */
    transfersFrom: (account: Address) => transfersOn(chains, account, fundedAt.get(account) ?? []),
    /** Another token on the network, which buyers may not pay with. */
    otherAsset() {
      otherToken ??= deployToken(chain);
      return otherToken;
    },
    /** Calls a contract as an account. Undefined when the chain refuses. */
    sendAs: (sender: Address, to: Address, data: Hex) => send(chain, { to, data, sender }),
    /** Submits a payment without the facilitator, which every holder of it can do. Undefined when the chain refuses. */
    submit: ({ signed }: ReceivedPayment) => settling.submission(signed).then((call) => send(chain, call)),
    /** Cancels a payment as its payer, so that it counts as used without a transfer. */
    async cancel({ signed }: ReceivedPayment, payer: CasePayer) {
      await send(chain, await settling.cancellation(signed, { ...chain, ...payer }));
    },
    /** Has the facilitator settle a payment, and its answer lost. */
    async settleAndLoseAnswer({ signed, body }: ReceivedPayment) {
      await using line = await startFacilitatorLine(harness.facilitator.url);
      line.of(signed.payer).rule = async (passed) => {
        await passed.forwardAndLose();
        return "reset";
      };
      await postPayment("settle", line.url, harness.organization.apiKey, body).catch(() => {});
    },
    now: () => chain.now(),
    /** Moves the chain's time. */
    advanceTime: async (seconds: number) => void (await chain.advanceTime(seconds)),
    /** Lets nothing be mined until the fault is removed. */
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

/** A network that public clients of both versions know, other than the one that is used. */
export function otherThan(network: NetworkName): Network {
  return network === "base" ? networks.polygon : networks.base;
}

/** Deploys a second token on a chain: the mock of USDC under another name. */
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
 * Sends a call, and waits until it is mined. Undefined when the contract refuses it. A call of nobody in particular comes from
 * an account of its own, since the node may give two transactions that one account sends together the same nonce.
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
    // Anything else says nothing about the client or the shop that is judged.
    const isRefused =
      error instanceof BaseError && error.walk((one) => one instanceof ExecutionRevertedError);
    if (isRefused) return undefined;
    throw error;
  }
}

/** Has an account let a contract, if there is one, take so much of its tokens. */
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

/** Every transfer of any token from an account, on any of the networks, in the order of the chains. */
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
