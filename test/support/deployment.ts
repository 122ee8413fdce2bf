import { setTimeout as sleep } from "node:timers/promises";
import {
  type Abi,
  createTestClient,
  encodeAbiParameters,
  encodeFunctionData,
  http,
  publicActions,
  type TransactionReceipt,
  TransactionReceiptNotFoundError,
  walletActions,
} from "viem";
import type { NetworkConfig } from "../../src/config/serve-config.ts";
import {
  mockUsdcAbi,
  mockUsdcBytecode,
  mockUsdcProxyBytecode,
  usdcSignaturesDeployedBytecode,
} from "../../src/contracts/mockUsdc.ts";
import {
  mock1271WalletBytecode,
  mock7702DelegateDeployedBytecode,
  mockGasBurningWalletDeployedBytecode,
} from "../../src/contracts/mockWallets.ts";
import { x402FacilitatorAbi, x402FacilitatorBytecode } from "../../src/contracts/x402Facilitator.ts";
import { signAuthorization } from "../../src/methods/exact-eip3009/authorization.ts";
import { authorizationOf, paymentOf } from "../../src/methods/exact-eip3009/eip3009-method.ts";
import {
  encodeCancellation,
  encodeSubmission,
} from "../../src/methods/exact-eip3009/on-chain/token-calls.ts";
import type { SettleCall } from "../../src/methods/on-chain/settling.ts";
import { usdcProxyAdmin, usdcSignaturesAddress } from "../../src/payer/accounts.ts";
import type { Address, Hex } from "../../src/protocol/hex.ts";
import { networks } from "../../src/protocol/networks.ts";
import { startAnvil } from "./anvil.ts";
import { accountOf, keyOf } from "./key-accounts.ts";

/** An anvil node with MockUSDC and the facilitator contract. */
export type TestDeployment = {
  url: string;
  network: NetworkConfig;
  operator: Address;
  operatorKey: Hex;
  usdc: Address;
  newestBlock(): Promise<{ number: bigint; timestamp: bigint; baseFeePerGas: bigint | null }>;
  snapshot(): Promise<Hex>;
  revert(snapshot: Hex): Promise<void>;
  setCode(address: Address, code: Hex): Promise<void>;
  /** Undefined if there is none. */
  codeAt(address: Address): Promise<Hex | undefined>;
  /** Mines empty blocks. */
  mine(blocks: number): Promise<void>;
  /** Leaves new transactions in the pool. */
  holdMining(): Promise<void>;
  /** Mines pending transactions, and from then on every transaction. */
  goOnMining(): Promise<void>;
  /** Sends from the admin, who is also the recoverer; returns the receipt. */
  send(to: Address, data: Hex, gas?: bigint): Promise<TransactionReceipt>;
  /** Sends several calls in one transaction; failing ones are ignored. */
  sendTogether(calls: readonly { to: Address; data: Hex }[]): Promise<TransactionReceipt>;
  /** Submits an authorization directly to the token, as anyone can who has seen it. */
  submitDirectly(call: SettleCall): Promise<TransactionReceipt>;
  /** The calldata that {@link submitDirectly} sends to the token. */
  encodeDirectSubmission(call: SettleCall): Hex;
  /** The calldata with which a payer, given by name, cancels an authorization. */
  encodeCancellation(payer: string, call: SettleCall): Promise<Hex>;
  /** A payment by a new payer, signed and funded by default. */
  pay(options?: PaymentOptions): Promise<SettleCall>;
  blacklist(account: Address): Promise<void>;
  pauseToken(): Promise<void>;
  pauseContract(): Promise<void>;
  /** Creates a contract wallet for the named owner. */
  createWallet(owner: string): Promise<Address>;
  /** Gives an account code that burns all gas when its signature is checked. */
  makeGasBurner(account: Address): Promise<void>;
  /** Delegates an account (EIP-7702) to code that accepts signatures by the account's own key. */
  delegate(account: Address): Promise<void>;
  stop(): Promise<void>;
};

export type PaymentOptions = {
  /** The name of the account whose key signs. */
  payer?: string;
  from?: Address;
  value?: bigint;
  funds?: bigint;
  validAfter?: bigint;
  validBefore?: bigint;
  recipient?: Address;
  /** The recipient that is signed; the facilitator contract by default. */
  to?: Address;
  authorizationNonce?: Hex;
};

/** Starts the node and deploys to it, with viem's client. */
export async function deployContracts(): Promise<TestDeployment> {
  const { chainId } = networks.base;
  const anvil = await startAnvil(chainId);
  const admin = accountOf("admin");
  const operator = accountOf("operator");
  const client = createTestClient({ mode: "anvil", transport: http(anvil.url) })
    .extend(publicActions)
    .extend(walletActions);
  await client.setBalance({ address: admin.address, value: 10n ** 20n });
  await client.setBalance({ address: operator.address, value: 10n ** 20n });

  /** Sends from the admin; returns the receipt. */
  async function send(to: Address | null, data: Hex, gas?: bigint) {
    const hash = await client.sendTransaction({ account: admin, chain: null, to, data, gas });
    // On a busy machine anvil occasionally misses a waiting transaction; another block then includes it.
    for (let looks = 1; ; looks++) {
      try {
        return await client.getTransactionReceipt({ hash });
      } catch (error) {
        if (!(error instanceof TransactionReceiptNotFoundError)) throw error;
      }
      if (looks % 200 === 0) await client.mine({ blocks: 1 });
      await sleep(5);
    }
  }

  async function create(bytecode: Hex, parameters: Hex): Promise<Address> {
    const { contractAddress } = await send(null, `${bytecode}${parameters.slice(2)}`);
    if (!contractAddress) throw new Error("nothing was deployed");
    return contractAddress;
  }

  await client.setCode({ address: usdcSignaturesAddress, bytecode: usdcSignaturesDeployedBytecode });
  const implementation = await create(mockUsdcBytecode, "0x");
  const usdc = await create(
    mockUsdcProxyBytecode,
    encodeAbiParameters(
      [{ type: "address" }, { type: "address" }, { type: "bytes" }],
      [
        implementation,
        usdcProxyAdmin,
        encodeFunctionData({
          abi: mockUsdcAbi,
          functionName: "initialize",
          args: ["USD Coin", "USDC", "2", 6, admin.address],
        }),
      ],
    ),
  );
  const facilitatorContract = await create(
    x402FacilitatorBytecode,
    encodeAbiParameters(
      [
        { type: "uint48" },
        { type: "address" },
        { type: "address[]" },
        { type: "address" },
        { type: "address" },
      ],
      [0, admin.address, [operator.address], admin.address, admin.address],
    ),
  );
  const asset = { ...networks.base.usdc, address: usdc };
  const network: NetworkConfig = {
    ...networks.base,
    usdc: asset,
    assets: [asset],
    facilitatorContract,
    rpcUrls: [anvil.url],
    confirmations: 1,
    maxFeePerGas: 10n ** 11n,
  };

  const setCode = (address: Address, bytecode: Hex) => client.setCode({ address, bytecode });

  return {
    url: anvil.url,
    network,
    operator: operator.address,
    operatorKey: keyOf("operator"),
    usdc,
    codeAt: (address) => client.getCode({ address }),
    newestBlock: () => client.getBlock(),
    snapshot: () => client.snapshot(),
    revert: (id) => client.revert({ id }),
    setCode,
    mine: (blocks) => client.mine({ blocks }),
    holdMining: () => client.setAutomine(false),
    async goOnMining() {
      await client.setAutomine(true);
      await client.mine({ blocks: 1 });
    },
    send,
    // An estimate would be too low, because the transaction succeeds even if its calls run out of gas.
    sendTogether: (calls) => send(null, callAll(calls), 2_000_000n),
    submitDirectly: (call) => send(usdc, submissionOf(call)),
    encodeDirectSubmission: submissionOf,

    encodeCancellation: (payer, { payment: { nonce } }) =>
      encodeCancellation(keyOf(payer), { asset: { ...asset, address: usdc }, chainId }, nonce),

    async pay(options = {}) {
      const signer = accountOf(options.payer ?? crypto.randomUUID());
      const from = options.from ?? signer.address;
      const value = options.value ?? 10_000n;
      await callToken("mint", [from, options.funds ?? value]);
      const signed = await signAuthorization(signer, {
        asset,
        chainId,
        to: options.to ?? facilitatorContract,
        value,
        validAfter: options.validAfter ?? 0n,
        validBefore: options.validBefore ?? 2n ** 40n,
        from,
        ...(options.authorizationNonce !== undefined && { nonce: options.authorizationNonce }),
      });
      return {
        payment: paymentOf(usdc, signed),
        recipient: options.to ?? options.recipient ?? accountOf("recipient").address,
      };
    },

    blacklist: (account) => callToken("blacklist", [account]),
    pauseToken: () => callToken("pause", []),

    async pauseContract() {
      await send(facilitatorContract, encodeFunctionData({ abi: x402FacilitatorAbi, functionName: "pause" }));
    },

    createWallet: (owner) =>
      create(mock1271WalletBytecode, encodeAbiParameters([{ type: "address" }], [accountOf(owner).address])),

    makeGasBurner: (account) => setCode(account, mockGasBurningWalletDeployedBytecode),

    async delegate(account) {
      const delegate = accountOf("delegate").address;
      await setCode(delegate, mock7702DelegateDeployedBytecode);
      await setCode(account, `0xef0100${delegate.slice(2)}`);
    },

    stop: () => anvil.stop(),
  };

  async function callToken(functionName: "mint" | "blacklist" | "pause", args: readonly unknown[]) {
    await send(usdc, encodeFunctionData({ abi: mockUsdcAbi as Abi, functionName, args }));
  }
}

/**
 * Init code that makes calls while it is deployed, and leaves no contract. Each call's calldata follows the code. Per
 * call: PUSH3 size PUSH3 from PUSH0 CODECOPY, PUSH0 PUSH0 PUSH3 size PUSH0 PUSH0 PUSH20 to GAS CALL POP
 */
function callAll(calls: readonly { to: Address; data: Hex }[]): Hex {
  const push3 = (value: number) => `62${value.toString(16).padStart(6, "0")}`;
  const stepBytes = 42;
  let from = calls.length * stepBytes + 1;
  const steps = calls.map(({ to, data }) => {
    const size = push3(data.length / 2 - 1);
    const step = `${size}${push3(from)}5f395f5f${size}5f5f73${to.slice(2)}5af150`;
    from += data.length / 2 - 1;
    return step;
  });
  return `0x${steps.join("")}00${calls.map(({ data }) => data.slice(2)).join("")}`;
}

/** The call to the token that uses a payment's authorization. */
function submissionOf({ payment }: SettleCall): Hex {
  return encodeSubmission(authorizationOf(payment), payment.signature);
}
