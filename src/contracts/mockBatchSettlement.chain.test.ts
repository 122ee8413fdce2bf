import {
  type Abi,
  BaseError,
  ContractFunctionRevertedError,
  createWalletClient,
  defineChain,
  encodeAbiParameters,
  encodeFunctionData,
  erc20Abi,
  type Hex,
  hashTypedData,
  http,
  keccak256,
  parseAbiParameters,
  parseEventLogs,
  publicActions,
  toEventSelector,
  toFunctionSelector,
} from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { placeContracts } from "../../test/support/place-contracts.ts";
import { type LocalNode, startNode } from "../harness/nodes/nodes.ts";
import { mockToken, publicContractCode } from "../harness/setup/place-contract.ts";
import {
  batchSettlementAddress,
  erc3009CollectorAddress,
  permit2CollectorAddress,
} from "../methods/batch-settlement/contracts.ts";
import { permit2Address } from "../methods/permit2/permit.ts";
import { networks } from "../protocol/networks.ts";
import { startWatchdog, type Watchdog } from "../util/watchdog.ts";
import {
  mockBatchSettlementAbi as abi,
  mockErc3009DepositCollectorAbi,
  mockPermit2DepositCollectorAbi,
} from "./mockBatchSettlement.ts";
import { mockUsdcAbi } from "./mockUsdc.ts";

/*
 * The stand-ins of scheme “batch-settlement”, as the rest of the world calls them: typed data that viem signs, by the definitions of the
 * scheme alone. All orders of checks are in contracts/test/MockBatchSettlement.t.sol.
 */

const { chainId, usdc } = networks.base;
const escrow = { address: batchSettlementAddress, abi } as const;
const [payer, receiver, authorizer, stranger] = Array.from({ length: 4 }, () =>
  privateKeyToAccount(generatePrivateKey()),
) as [Account, Account, Account, Account];
type Account = ReturnType<typeof privateKeyToAccount>;

type Channel = ReturnType<typeof newChannel>;
type Claim = { ceiling: bigint; total: bigint; signature?: Hex; channel?: Channel };

let watchdog: Watchdog;
let node: LocalNode;
let client: ReturnType<typeof connect>;
let channel: Channel;
let salt = 0n;

beforeAll(async () => {
  watchdog = startWatchdog();
  node = await startNode({ name: "base", chainId, watchdog });
  await node.batch(await publicContractCode(usdc));
  await placeContracts(node, [mockToken(usdc)]);
  await node.request("evm_setAutomine", true);
  client = connect();
  for (const { address } of [payer, receiver, authorizer, stranger]) {
    await node.request("anvil_setBalance", address, "0xde0b6b3a7640000");
  }
  await send(payer, "mint", [payer.address, 1_000_000n], { address: usdc.address, abi: mockUsdcAbi });
  await send(payer, "approve", [permit2Address, 1_000_000n], { address: usdc.address, abi: erc20Abi });
});
afterAll(async () => {
  await node?.stop();
  await watchdog?.close();
});
beforeEach(() => {
  channel = newChannel();
});

test("opens a channel by EIP-3009 and adds to it by Permit2; what is claimed is settled, and the rest refunded", async () => {
  expect(await deposit(600n)).toEqual(["ChannelCreated", "Deposited"]);
  expect(await deposit(400n, "permit2")).toEqual(["Deposited"]);
  expect(await stateOf(channel)).toEqual([1_000n, 0n]);
  const { id } = channel;
  const other = newChannel();
  await deposit(100n, "eip3009", other);
  const both = await claimsOf({ ceiling: 400n, total: 300n }, { channel: other, ceiling: 50n, total: 50n });
  expect(await send(stranger, "claimWithSignature", both)).toEqual(["Claimed", "Claimed"]);
  expect(await send(receiver, "claim", [(await claimsOf({ ceiling: 500n, total: 500n }))[0]])).toEqual([
    "Claimed",
  ]);
  const before = await balanceOf(receiver);
  expect(await send(stranger, "settle", [receiver.address, usdc.address])).toEqual(["Settled"]);
  expect((await balanceOf(receiver)) - before).toBe(550n);

  expect(await send(receiver, "refund", [channel.config, 100n])).toEqual(["Refunded"]);
  const claim = await claimsOf({ ceiling: 600n, total: 600n });
  const refund = [channel.config, 1_000n, 1n, await signRefund(id, 1n, 1_000n)] as const;
  const calls = [
    encodeFunctionData({ abi, functionName: "claimWithSignature", args: claim }),
    encodeFunctionData({ abi, functionName: "refundWithSignature", args: refund }),
  ];
  expect(await send(stranger, "multicall", [calls])).toEqual(["Claimed", "Refunded"]);
  expect(await stateOf(channel)).toEqual([600n, 600n]);
});

test("a success may have done nothing: then there is no event", async () => {
  await deposit(100n);
  await send(stranger, "claimWithSignature", await claimsOf({ ceiling: 100n, total: 100n }));
  await send(stranger, "settle", [receiver.address, usdc.address]);
  const claims = await claimsOf({ ceiling: 0n, total: 100n, signature: "0x1234" });
  expect(await send(stranger, "claimWithSignature", claims)).toEqual([]);
  expect(await send(stranger, "settle", [receiver.address, usdc.address])).toEqual([]);
  const refund = [channel.config, 5n, 0n, await signRefund(channel.id, 0n, 5n)];
  expect(await send(stranger, "refundWithSignature", refund)).toEqual([]);
  expect(await read("refundNonce", [channel.id])).toBe(1n);
});

test("a payer withdraws what is free after the delay, and vouchers that were not claimed are lost", async () => {
  await deposit(1_000n);
  const claims = await claimsOf({ ceiling: 500n, total: 500n });
  expect(await send(payer, "initiateWithdraw", [channel.config, 1_000n])).toEqual(["WithdrawInitiated"]);
  expect(await revertOf(payer, "initiateWithdraw", [channel.config, 1n])).toBe("WithdrawalAlreadyPending");
  await send(receiver, "claim", [(await claimsOf({ ceiling: 300n, total: 300n }))[0]]);
  await send(receiver, "refund", [channel.config, 100n]);
  expect(await read("pendingWithdrawals", [channel.id])).toMatchObject([900n, expect.any(Number)]);
  expect(await revertOf(payer, "finalizeWithdraw", [channel.config])).toBe("WithdrawDelayNotElapsed");
  await node.request("evm_increaseTime", 900);
  expect(await send(payer, "finalizeWithdraw", [channel.config])).toEqual(["WithdrawFinalized"]);
  expect(await stateOf(channel)).toEqual([300n, 300n]);
  expect(await revertOf(stranger, "claimWithSignature", claims)).toBe("ClaimExceedsBalance");
});

test("names each reason for a refusal", async () => {
  const { config } = channel;
  const collect = (changes: Partial<typeof config>, amount = 1n, collector: Hex = stranger.address) =>
    revertOf(stranger, "deposit", [{ ...config, ...changes }, amount, collector, "0x"]);
  const nobody: Hex = `0x${"0".repeat(40)}`;
  expect(await collect({ token: nobody })).toBe("InvalidChannel");
  expect(await collect({ withdrawDelay: 899 })).toBe("WithdrawDelayOutOfRange");
  expect(await collect({}, 0n)).toBe("ZeroDeposit");
  expect(await collect({}, 1n, nobody)).toBe("InvalidCollector");
  const collected = [payer.address, usdc.address, 1n, channel.id, "0x"];
  for (const collector of [
    { address: erc3009CollectorAddress, abi: mockErc3009DepositCollectorAbi },
    { address: permit2CollectorAddress, abi: mockPermit2DepositCollectorAbi },
  ]) {
    expect(await revertOf(payer, "collect", collected, collector)).toBe("OnlyX402BatchSettlement");
  }

  await deposit(10n);
  expect(await collect({}, 2n ** 128n - 1n)).toBe("DepositOverflow");
  const claiming = async (...claims: Claim[]) =>
    revertOf(stranger, "claimWithSignature", await claimsOf(...claims));
  const [claims, signature] = await claimsOf({ ceiling: 5n, total: 5n });
  expect(await claiming()).toBe("EmptyBatch");
  expect(await revertOf(stranger, "claim", [claims])).toBe("NotAuthorizedToClaim");
  expect(await claiming({ ceiling: 5n, total: 6n })).toBe("ClaimExceedsCeiling");
  expect(await claiming({ ceiling: 11n, total: 11n })).toBe("ClaimExceedsBalance");
  expect(await claiming({ ceiling: 5n, total: 5n, signature: `0x${"11".repeat(64)}` })).toBe(
    "ECDSAInvalidSignatureLength",
  );
  expect(await claiming({ ceiling: 5n, total: 5n, signature })).toBe("InvalidSignature");
  const foreign = newChannel({ receiverAuthorizer: stranger.address });
  expect(await claiming({ ceiling: 5n, total: 5n }, { channel: foreign, ceiling: 1n, total: 1n })).toBe(
    "NotReceiverAuthorizer",
  );

  expect(await revertOf(stranger, "refund", [config, 1n])).toBe("NotAuthorizedToRefund");
  expect(await revertOf(receiver, "refund", [config, 0n])).toBe("ZeroRefund");
  expect(await revertOf(stranger, "refundWithSignature", [config, 1n, 1n, "0x"])).toBe("InvalidRefundNonce");
  expect(await revertOf(stranger, "refundWithSignature", [config, 1n, 0n, "0x"])).toBe("InvalidSignature");

  expect(await revertOf(stranger, "initiateWithdraw", [config, 1n])).toBe("InvalidChannel");
  expect(await revertOf(payer, "initiateWithdraw", [config, 0n])).toBe("NothingToWithdraw");
  expect(await revertOf(payer, "initiateWithdraw", [config, 11n])).toBe("WithdrawAmountExceedsAvailable");
  expect(await revertOf(stranger, "finalizeWithdraw", [config])).toBe("NotAuthorizedToFinalizeWithdraw");
  expect(await revertOf(payer, "finalizeWithdraw", [config])).toBe("WithdrawalNotPending");
});

test("has every function, error and event of the original", () => {
  const selectors = abi.map((item) => {
    if (item.type === "event") return toEventSelector(item);
    return toFunctionSelector({ stateMutability: "view", outputs: [], ...item, type: "function" });
  });
  expect(original.split(/\s+/).filter((selector) => !selectors.includes(selector as Hex))).toEqual([]);
});

/** Selectors of its functions, then of its errors, and topics of its events. */
const original = `0x140f1e75 0x29237b0c 0xe43ce1f2 0x9db32a8f 0xdce4bfae 0xb77433e9 0xcf5cf3dc 0xe88377b1 0xac9650d8 0x5e5e0b87
  0x7a7ebd7b 0xb7f06ebe 0x21ff6389 0xf0dc792e 0x862bb199 0xe25cf189 0x488ccc3b 0x84b0196e 0xae159439 0x1fc3277d
  0xea3a9a39 0x56316e87 0x1132981b 0x8baa579f 0xf5e2237d 0xdefb7069 0x7864f008 0xf1789775 0x7d8242b6 0xa2aed0f0
  0x3a0a1ca6 0x15f969d5 0xf3965827 0xd0d04f60 0x6d3d5764 0x4574fab6 0xc2e5347d 0xeb43592c 0x18b1afd4 0x164f1afe
  0xd758525c 0x3ee5aeb5 0xf645eedf 0xfce698f7 0xd78bce0c 0x5274afe7 0xd6bda275
  0x69d8248d5566bdb2ebc4d218970710d8378a2ff9b709a999e052b71970f808fa
  0x8d5942f197f362dfd44dfdc1b0b7a9721c9151b67f55817c83349271d3c08d37
  0x6c2a09353b5e75e70d0b9778b80a413809bb235d46c211811c474b3346791d89
  0x36bd546bb573e8921fdbfd934bbed62d872796b01792cd240cce27f79dd3eddd
  0x7337b4386b690fdb8ba66905b92b9d45d33bc6626ee2620c905fb150ec0cc47d
  0xa84286cf8ebc7903a663c77c8d99aa92b600d4c2fcca872a5d4a663db4eb394b
  0xe4280d0d903c7f258f62b07c62f262377cbaa23f7791d78126e6446e0f0e3c23
  0x546ce1e2242cd930c196bd08b894443562d709b4fffe4f028a75a6d233efc6e3`;

function connect() {
  return createWalletClient({
    chain: defineChain({
      ...{ id: chainId, name: "base", rpcUrls: { default: { http: [node.rpcUrl] } } },
      nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
    }),
    transport: http(node.rpcUrl),
    pollingInterval: 10,
  }).extend(publicActions);
}

const fields = (text: string) =>
  text.split(", ").map((field) => {
    const [type = "", name = ""] = field.split(" ");
    return { name, type };
  });
const types = {
  ChannelConfig: fields(
    "address payer, address payerAuthorizer, address receiver, address receiverAuthorizer, address token, uint40 withdrawDelay, bytes32 salt",
  ),
  Voucher: fields("bytes32 channelId, uint128 maxClaimableAmount"),
  Refund: fields("bytes32 channelId, uint256 nonce, uint128 amount"),
  ClaimBatch: fields("ClaimEntry[] claims"),
  ClaimEntry: fields("bytes32 channelId, uint128 maxClaimableAmount, uint128 totalClaimed"),
  ReceiveWithAuthorization: fields(
    "address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce",
  ),
  PermitWitnessTransferFrom: fields(
    "TokenPermissions permitted, address spender, uint256 nonce, uint256 deadline, DepositWitness witness",
  ),
  TokenPermissions: fields("address token, uint256 amount"),
  DepositWitness: fields("bytes32 channelId"),
};
const domain = { name: "x402 Batch Settlement", version: "1", chainId, verifyingContract: escrow.address };

function newChannel(changes: { receiverAuthorizer?: Hex } = {}) {
  const config = {
    payer: payer.address,
    payerAuthorizer: payer.address,
    receiver: receiver.address,
    receiverAuthorizer: authorizer.address,
    token: usdc.address,
    withdrawDelay: 900,
    salt: encodeAbiParameters([{ type: "uint256" }], [++salt]),
    ...changes,
  };
  return { config, id: hashTypedData({ domain, types, primaryType: "ChannelConfig", message: config }) };
}

/** By the payer, to be submitted by anybody. Gives the events of the escrow. */
async function deposit(amount: bigint, by: "eip3009" | "permit2" = "eip3009", { config, id } = channel) {
  const number = ++salt;
  const end = 10n ** 12n;
  if (by === "eip3009") {
    const message = {
      ...{ from: payer.address, to: erc3009CollectorAddress, value: amount },
      ...{ validAfter: 0n, validBefore: end },
      nonce: keccak256(encodeAbiParameters(parseAbiParameters("bytes32, uint256"), [id, number])),
    };
    const token = { name: usdc.name, version: usdc.version, chainId, verifyingContract: usdc.address };
    const signature = await payer.signTypedData({
      ...{ domain: token, types, primaryType: "ReceiveWithAuthorization", message },
    });
    const data = encodeAbiParameters(parseAbiParameters("uint256, uint256, uint256, bytes"), [
      ...([0n, end, number, signature] as const),
    ]);
    return send(stranger, "deposit", [config, amount, erc3009CollectorAddress, data]);
  }
  const signature = await payer.signTypedData({
    domain: { name: "Permit2", chainId, verifyingContract: permit2Address },
    types,
    primaryType: "PermitWitnessTransferFrom",
    message: {
      permitted: { token: usdc.address, amount },
      ...{ spender: permit2CollectorAddress, nonce: number, deadline: end, witness: { channelId: id } },
    },
  });
  const data = encodeAbiParameters(parseAbiParameters("uint256, uint256, bytes, bytes"), [
    ...([number, end, signature, "0x"] as const),
  ]);
  return send(stranger, "deposit", [config, amount, permit2CollectorAddress, data]);
}

/** The arguments of claimWithSignature. */
async function claimsOf(...claims: Claim[]) {
  const rows = await Promise.all(
    claims.map(async ({ channel: { config, id } = channel, ceiling, total, signature }) => ({
      voucher: { channel: config, maxClaimableAmount: ceiling },
      signature:
        signature ??
        (await payer.signTypedData({
          ...{ domain, types, primaryType: "Voucher" },
          message: { channelId: id, maxClaimableAmount: ceiling },
        })),
      totalClaimed: total,
    })),
  );
  const entries = claims.map(({ channel: { id } = channel, ceiling, total }) => ({
    ...{ channelId: id, maxClaimableAmount: ceiling, totalClaimed: total },
  }));
  const signature = await authorizer.signTypedData({
    ...{ domain, types, primaryType: "ClaimBatch", message: { claims: entries } },
  });
  return [rows, signature] as const;
}

const signRefund = (channelId: Hex, nonce: bigint, amount: bigint) =>
  authorizer.signTypedData({ domain, types, primaryType: "Refund", message: { channelId, nonce, amount } });

/** Gives the names of the escrow's events, in their order. */
async function send(
  account: Account,
  functionName: string,
  args: readonly unknown[],
  contract: { address: Hex; abi: Abi } = escrow,
): Promise<string[]> {
  const hash = await client.writeContract({ account, ...contract, functionName, args, chain: client.chain });
  const { status, logs } = await client.waitForTransactionReceipt({ hash });
  expect(status).toBe("success");
  return parseEventLogs({ abi, logs }).map(({ eventName }) => eventName);
}

/** The name of the error that a call reverts with. */
async function revertOf(
  account: Account,
  functionName: string,
  args: readonly unknown[],
  contract: { address: Hex; abi: Abi } = escrow,
): Promise<string | undefined> {
  try {
    await client.simulateContract({ account, ...contract, functionName, args });
  } catch (error) {
    const cause = error instanceof BaseError ? error.walk((e) => e instanceof ContractFunctionRevertedError) : error;
    if (cause instanceof ContractFunctionRevertedError) return cause.data?.errorName;
    throw error;
  }
  return undefined;
}

const read = (functionName: string, args: readonly unknown[]) =>
  client.readContract({ address: escrow.address, abi: abi as Abi, functionName, args });
const stateOf = ({ id }: Channel) => read("channels", [id]);
const balanceOf = ({ address }: Account) =>
  client.readContract({ address: usdc.address, abi: erc20Abi, functionName: "balanceOf", args: [address] });
