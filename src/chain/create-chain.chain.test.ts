import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { accountOf } from "../../test/support/key-accounts.ts";
import { simulateSettle } from "../../test/support/simulate-settle.ts";
import { answering, type StubNode, sendJson, startStubNode } from "../../test/support/stub-node.ts";
import { useProxiedDeployment } from "../../test/support/use-proxied-deployment.ts";
import type { NetworkConfig } from "../config/serve-config.ts";
import { domainSeparator } from "../methods/eip712.ts";
import { authorizationDigest } from "../methods/exact-eip3009/authorization.ts";
import { authorizationOf } from "../methods/exact-eip3009/eip3009-method.ts";
import { readSettlements } from "../methods/exact-eip3009/on-chain/eip3009-settling.ts";
import { diagnose } from "../methods/exact-eip3009/on-chain/eip3009-state.ts";
import { settleTransaction } from "../methods/exact-eip3009/on-chain/eip3009-transaction.ts";
import { receivedOf } from "../methods/on-chain/payouts.ts";
import type { SettleCall } from "../methods/on-chain/settling.ts";
import { type Hex, keccak256 } from "../protocol/hex.ts";
import { UndeterminedError } from "../util/errors.ts";
import type { Chain } from "./chain.ts";
import { createChain } from "./create-chain.ts";
import { estimateFees } from "./fees.ts";
import { createLocalSigner } from "./signing/local-signer.ts";
import { normaliseSignature } from "./signing/recover-signer.ts";

const { deployment, proxy, network, chain, sendAsOperator } = useProxiedDeployment();

const digestOf = (call: SettleCall) =>
  authorizationDigest(domainSeparator(network.usdc, network.chainId), authorizationOf(call.payment));

const simulate = (call: SettleCall) => simulateSettle(chain, call, { withFunds: true });

/** A payment from a contract wallet, signed by its owner. */
async function payFromWallet() {
  const wallet = await deployment.createWallet("wallet owner");
  return deployment.pay({ payer: "wallet owner", from: wallet });
}

/** A payment from an account with delegated code (EIP-7702). */
async function payFromDelegatedAccount() {
  const call = await deployment.pay({ payer: "delegator" });
  await deployment.delegate(call.payment.payer);
  return call;
}

const settle = (calls: readonly SettleCall[]) => sendAsOperator(settleTransaction(calls, network));

/** The same payment with another signature. */
const signedBy = (call: SettleCall, signature: Hex): SettleCall => ({
  ...call,
  payment: { ...call.payment, signature },
});

describe("simulating settle", () => {
  test("tells head and balance of a payment that would settle, in one request", async () => {
    const call = await deployment.pay({ funds: 25_000n });
    const block = await deployment.newestBlock();
    expect(await simulate(call)).toEqual({
      head: { number: block.number, timestamp: block.timestamp, baseFeePerGas: block.baseFeePerGas },
      funds: { payer: 25_000n, operator: expect.any(BigInt), tip: expect.any(BigInt) },
      payerCode: null,
      revert: undefined,
    });
    expect(await simulateSettle(chain, call, { withFunds: false })).toMatchObject({ funds: undefined });
    expect(proxy.batches.map((batch) => batch.map(({ method }) => method))).toEqual([
      ["eth_getBlockByNumber", "eth_call", "eth_call", "eth_getBalance", "eth_maxPriorityFeePerGas"],
      ["eth_getBlockByNumber", "eth_call"],
    ]);
  });

  test("of many payments at once takes few requests, each of which asks for the head once", async () => {
    const call = await deployment.pay();
    await Promise.all(Array.from({ length: 300 }, () => simulate(call)));
    expect(proxy.batches.length).toBeLessThanOrEqual(10);
    for (const batch of proxy.batches) {
      expect(batch.filter(({ method }) => method === "eth_getBlockByNumber")).toHaveLength(1);
    }
  });

  test("goes through for a contract wallet and for a delegated account", async () => {
    expect(await simulate(await payFromWallet())).toMatchObject({ revert: undefined });
    expect(await simulate(await payFromDelegatedAccount())).toMatchObject({ revert: undefined });
  });

  test("tells which code is at the payer's address, of a delegated account by its delegate", async () => {
    for (const call of [await payFromWallet(), await payFromDelegatedAccount()]) {
      const code = await deployment.codeAt(call.payment.payer);
      expect(await simulate(call)).toMatchObject({ payerCode: keccak256(code ?? "0x") });
    }
  });

  const tokenSays = (message: string) => ({ kind: "error", message });

  test.each<[string, () => Promise<SettleCall>, unknown]>(
    [
      [
        "a used authorization",
        async () => {
          const call = await deployment.pay({ funds: 50_000n });
          await settle([call]);
          return call;
        },
        tokenSays("FiatTokenV2: authorization is used or canceled"),
      ],
      [
        "too little balance",
        () => deployment.pay({ funds: 9_999n }),
        tokenSays("ERC20: transfer amount exceeds balance"),
      ],
      [
        "an authorization that is not yet valid",
        () => deployment.pay({ validAfter: 2n ** 39n }),
        tokenSays("FiatTokenV2: authorization is not yet valid"),
      ],
      [
        "an expired authorization",
        () => deployment.pay({ validBefore: 1n }),
        tokenSays("FiatTokenV2: authorization is expired"),
      ],
      [
        "another account's signature",
        () => deployment.pay({ payer: "mallory", from: accountOf("alice").address }),
        tokenSays("FiatTokenV2: invalid signature"),
      ],
      [
        "v 0 or 1",
        async () => {
          const call = await deployment.pay();
          const v = call.payment.signature.endsWith("1b") ? "00" : "01";
          return signedBy(call, `${call.payment.signature.slice(0, -2)}${v}` as Hex);
        },
        tokenSays("ECRecover: invalid signature 'v' value"),
      ],
      [
        "a blacklisted payer",
        async () => {
          const call = await deployment.pay();
          await deployment.blacklist(call.payment.payer);
          return call;
        },
        tokenSays("Blacklistable: account is blacklisted"),
      ],
      [
        "a paused token",
        async () => {
          const call = await deployment.pay();
          await deployment.pauseToken();
          return call;
        },
        tokenSays("Pausable: paused"),
      ],
      [
        "a paused contract",
        async () => {
          const call = await deployment.pay();
          await deployment.pauseContract();
          return call;
        },
        { kind: "custom", name: "EnforcedPause", args: [] },
      ],
      [
        "a wallet that burns all its gas",
        async () => {
          const call = await deployment.pay();
          await deployment.makeGasBurner(call.payment.payer);
          return call;
        },
        { kind: expect.stringMatching(/error|custom/) },
      ],
      [
        "a recipient that cannot be one",
        async () => ({ ...(await deployment.pay()), recipient: network.facilitatorContract }),
        { kind: "custom", name: "InvalidRecipient" },
      ],
    ].map(([name, call, revert]) => [name, call, revert] as never),
  )("tells why: %s", async (_, pay, revert) => {
    expect((await simulate(await pay())).revert).toMatchObject(revert as object);
  });

  test("from an account that is no operator is refused", async () => {
    const stranger = createChain({ network, operator: accountOf("stranger").address });
    const { revert } = await simulateSettle(stranger, await deployment.pay(), { withFunds: false });
    expect(revert).toMatchObject({ kind: "custom", name: "AccessControlUnauthorizedAccount" });
  });

  test("goes through with v 0 or 1, once it is normalised", async () => {
    const call = await deployment.pay();
    const v = call.payment.signature.endsWith("1b") ? "00" : "01";
    const signature = normaliseSignature(`${call.payment.signature.slice(0, -2)}${v}` as Hex);
    expect(await simulate(signedBy(call, signature))).toMatchObject({ revert: undefined });
  });
});

describe("a node that answers strangely", () => {
  const block = { number: "0x10", timestamp: "0x20", baseFeePerGas: "0x30" };
  let node: StubNode;
  let strange: Chain;
  let call: SettleCall;
  beforeEach(async () => {
    node = await startStubNode(answering(() => null));
    strange = createChain({
      network: { ...network, rpcUrls: [node.url] },
      operator: deployment.operator,
    });
    call = await deployment.pay();
  });
  afterEach(() => node.stop());

  /** Answers `eth_call` in one way and everything else in another. */
  const behave = (onCall: object, other: object = { result: block }) =>
    node.behave((calls, response) =>
      sendJson(
        response,
        calls.map(({ id, method }) => ({ id, ...(method === "eth_call" ? onCall : other) })),
      ),
    );

  test("in the words of other software is understood", async () => {
    const data = `${"20".padStart(64, "0")}${"2".padStart(64, "0")}${"6e6f".padEnd(64, "0")}`;
    behave({ error: { code: -32015, message: "VM execution error.", data: `Reverted 0x08c379a0${data}` } });
    expect(await simulateSettle(strange, call, { withFunds: false })).toEqual({
      head: { number: 16n, timestamp: 32n, baseFeePerGas: 48n },
      funds: undefined,
      payerCode: undefined,
      revert: { kind: "error", message: "no" },
    });
  });

  test.each<[string, object]>([
    ["no block", { result: null }],
    ["a block without base fee", { result: { ...block, baseFeePerGas: undefined } }],
    ["a block with a time that is a number", { result: { ...block, timestamp: 32 } }],
    ["a block with a number that is text", { result: { ...block, number: "16" } }],
    ["an error", { error: { code: -32000, message: "header not found" } }],
  ])("with %s for the head gives no verdict", async (_, head) => {
    behave({ result: "0x" }, head);
    await expect(simulateSettle(strange, call, { withFunds: false })).rejects.toThrow(UndeterminedError);
    await expect(strange.head()).rejects.toThrow(UndeterminedError);
  });

  test.each<[string, object]>([
    ["an error that may be anything", { error: { code: -32000, message: "execution reverted" } }],
    ["an internal error", { error: { code: -32603, message: "internal error" } }],
    ["an unknown method", { error: { code: -32601, message: "no such method" } }],
    ["an error that is none", { error: "no" }],
    ["half a byte", { result: "0x1" }],
    ["a number", { result: 1 }],
    ["null", { result: null }],
  ])("with %s for a call gives no verdict", async (_, answer) => {
    behave(answer);
    await expect(simulateSettle(strange, call, { withFunds: true })).rejects.toThrow(UndeterminedError);
    await expect(strange.askWallet(call.recipient, digestOf(call), "0x")).rejects.toThrow(UndeterminedError);
    await expect(diagnose(strange, call)).rejects.toThrow(UndeterminedError);
  });

  test("with an empty answer to balanceOf gives no balance", async () => {
    behave({ result: "0x" });
    await expect(simulateSettle(strange, call, { withFunds: true })).rejects.toThrow(UndeterminedError);
  });

  test("with a balance older than its head is taken at its older word", async () => {
    const word = (value: number) => value.toString(16).padStart(64, "0");
    node.behave(
      answering(({ method, params }) => {
        if (method === "eth_getBlockByNumber") return block;
        if (method === "eth_getBalance") return "0x5";
        if (method === "eth_maxPriorityFeePerGas") return "0x1e8480";
        const isSettle = JSON.stringify(params).includes('"to"');
        return isSettle ? "0x" : `0x${word(15)}${word(0)}${word(1)}${word(0)}${word(1)}${word(1)}${word(7)}`;
      }),
    );
    expect(await simulateSettle(strange, call, { withFunds: true })).toEqual({
      head: { number: 15n, timestamp: 32n, baseFeePerGas: 48n },
      funds: { payer: 7n, operator: 5n, tip: 2_000_000n },
      payerCode: null,
      revert: undefined,
    });
  });

  test("that loses track of its head in the middle of a batch is asked again", async () => {
    let refused = 0;
    node.behave((calls, response) =>
      sendJson(
        response,
        calls.map(({ id, method }) =>
          method === "eth_call" && refused++ < 2
            ? { id, error: { code: -32001, message: "block not found" } }
            : { id, result: method === "eth_call" ? "0x" : block },
        ),
      ),
    );
    expect(await simulateSettle(strange, call, { withFunds: false })).toMatchObject({ revert: undefined });
    expect(node.batches).toHaveLength(3);
  });

  test.each<unknown>(["0x", "0x20000000000000", 1, null, "one"])(
    "with %j for a transaction count is not believed",
    async (result) => {
      node.behave(answering(() => result));
      await expect(strange.transactionCount(call.recipient)).rejects.toThrow(UndeterminedError);
    },
  );

  test("with the receipt of another transaction is not believed", async () => {
    const [asked, other] = [`0x${"12".repeat(32)}`, `0x${"34".repeat(32)}`] as const;
    node.behave(
      answering(() => ({
        transactionHash: other,
        status: "0x1",
        blockNumber: "0x1",
        blockHash: other,
        logs: [],
      })),
    );
    expect(await strange.receipts([other])).toMatchObject([{ succeeded: true }]);
    expect(await strange.receipts([asked])).toEqual([null]);
  });

  test("tells the operator what it said", async () => {
    behave({ result: "0x" }, { error: { code: -32000, message: "header not found" } });
    const error: unknown = await strange.head().catch((error: unknown) => error);
    expect(error).toMatchObject({
      message: "base gave no usable answer; try again",
      hints: ["An RPC endpoint of base: the newest block: JSON-RPC error -32000: header not found"],
    });
  });
});

/** Code that answers 0x1626ba7e and zeros to every call. */
const sayYes = `7f1626ba7e${"00".repeat(28)}5f5260205ff3`;

describe("asking a wallet", () => {
  const ask = (call: SettleCall, signature = call.payment.signature) =>
    chain.askWallet(call.payment.payer, digestOf(call), signature);

  test("an account without code has no say", async () => {
    expect(await ask(await deployment.pay())).toBe("no_code");
  });

  test("a contract wallet takes its owner's signature and no other, in one request each", async () => {
    const call = await payFromWallet();
    proxy.batches.length = 0;
    expect(await ask(call)).toBe("accepted");
    const other = await accountOf("mallory").sign({ hash: digestOf(call) });
    expect(await ask(call, other)).toBe("refused");
    expect(await ask(call, "0x")).toBe("refused");
    expect(proxy.batches).toHaveLength(3);
  });

  test("a delegated account (EIP-7702) is asked through its delegate", async () => {
    const call = await payFromDelegatedAccount();
    expect(await ask(call)).toBe("accepted");
    const other = await accountOf("mallory").sign({ hash: digestOf(call) });
    expect(await ask(call, other)).toBe("refused");
  });

  test.each<[string, Hex]>([
    ["reverts", "0x5f5ffd"],
    ["burns all its gas", "0xfe"],
    ["runs for ever", "0x5b5f56"],
    ["answers nothing", "0x00"],
    ["answers with 4 bytes", "0x631626ba7e5f526004601cf3"],
    ["answers with the yes in the wrong place", "0x631626ba7e5f5260205ff3"],
    ["answers with more than its gas allows", "0x621000005ff3"],
    [
      "writes to its storage before it says yes",
      "0x60015f557f1626ba7e00000000000000000000000000000000000000000000000000000000 5f5260205ff3".replace(
        " ",
        "",
      ) as Hex,
    ],
    ["delegates to an account without code", `0xef0100${"12".repeat(20)}`],
  ])("code that %s refuses", async (_, bytecode) => {
    const call = await deployment.pay();
    await deployment.setCode(call.payment.payer, bytecode);
    expect(await ask(call)).toBe("refused");
  });

  test("code that says yes to everything accepts", async () => {
    const call = await deployment.pay();
    await deployment.setCode(call.payment.payer, `0x${sayYes}`);
    expect(await ask(call, `0x${"ab".repeat(5_000)}`)).toBe("accepted");
  });
});

describe("the diagnosis of a failed simulation", () => {
  const healthy = {
    authorizationUsed: false,
    payerBalance: 10_000n,
    payerBlacklisted: false,
    recipientBlacklisted: false,
    contractBlacklisted: false,
    assetPaused: false,
    contractPaused: false,
    operatorAuthorized: true,
  };

  test.each<[keyof typeof healthy, (call: SettleCall) => Promise<unknown>, Partial<typeof healthy>]>([
    ["payerBalance", async () => {}, {}],
    ["authorizationUsed", (call) => settle([call]), { authorizationUsed: true, payerBalance: 0n }],
    ["payerBlacklisted", (call) => deployment.blacklist(call.payment.payer), { payerBlacklisted: true }],
    ["recipientBlacklisted", (call) => deployment.blacklist(call.recipient), { recipientBlacklisted: true }],
    [
      "contractBlacklisted",
      () => deployment.blacklist(network.facilitatorContract),
      { contractBlacklisted: true },
    ],
    ["assetPaused", () => deployment.pauseToken(), { assetPaused: true }],
    ["contractPaused", () => deployment.pauseContract(), { contractPaused: true }],
  ])("finds %s, in one request", async (_, happen, found) => {
    const call = await deployment.pay();
    await happen(call);
    proxy.batches.length = 0;
    expect(await diagnose(chain, call)).toEqual({ ...healthy, ...found });
    expect(proxy.batches).toHaveLength(1);
  });

  test("finds that the operator has no role", async () => {
    const stranger = createChain({ network, operator: accountOf("stranger").address });
    expect(await diagnose(stranger, await deployment.pay())).toEqual({
      ...healthy,
      operatorAuthorized: false,
    });
  });

  test("takes a token without blacklist and pause as one that never uses them", async () => {
    const call = await deployment.pay();
    // Answers 7 to balanceOf and to authorizationState, and reverts on everything else.
    const bytecode = "0x5f3560e01c806370a0823114601c578063e94a010214601c575f5ffd5b60075f5260205ff3";
    await deployment.setCode(deployment.usdc, bytecode);
    expect(await diagnose(chain, call)).toEqual({ ...healthy, payerBalance: 7n, authorizationUsed: true });
  });

  test("gives none where there is no token", async () => {
    const call = await deployment.pay();
    await deployment.setCode(deployment.usdc, "0x");
    await expect(diagnose(chain, call)).rejects.toThrow(UndeterminedError);
  });
});

describe("transactions", () => {
  test("settle one payment, and the receipt proves it", async () => {
    const call = await deployment.pay();
    const receipt = await settle([call]);
    const proofs = readSettlements(receipt, network.facilitatorContract);
    expect(receipt.succeeded).toBe(true);
    expect(proofs.find(receivedOf(call))).toEqual({ settled: true });
    expect(proofs.find({ ...receivedOf(call), value: 1n })).toBeUndefined();
    expect(proofs.find({ ...receivedOf(call), recipient: accountOf("mallory").address })).toBeUndefined();
    expect(readSettlements(receipt, deployment.usdc).find(receivedOf(call))).toBeUndefined();
  });

  test("settle a batch, and the receipt tells the payments that failed from those that did not", async () => {
    const other = accountOf("other recipient").address;
    const poor = await deployment.pay({ funds: 1n });
    const burner = await deployment.pay();
    await deployment.makeGasBurner(burner.payment.payer);
    const good = [
      await deployment.pay(),
      await deployment.pay({ recipient: other }),
      await payFromWallet(),
      await payFromDelegatedAccount(),
    ];
    const receipt = await settle([...good, poor, burner]);
    const proofs = readSettlements(receipt, network.facilitatorContract);
    expect(good.map((call) => proofs.find(receivedOf(call)))).toEqual(good.map(() => ({ settled: true })));
    expect(proofs.find(receivedOf(poor))).toEqual({
      settled: false,
      failure: "ERC20: transfer amount exceeds balance",
    });
    expect(proofs.find(receivedOf(burner))).toMatchObject({ settled: false });
  });

  test("a batch to a recipient that cannot be paid fails for that recipient alone", async () => {
    const blocked = accountOf("blocked recipient").address;
    await deployment.blacklist(blocked);
    const good = await deployment.pay();
    const bad = await deployment.pay({ recipient: blocked });
    const proofs = readSettlements(await settle([good, bad]), network.facilitatorContract);
    expect(proofs.find(receivedOf(good))).toEqual({ settled: true });
    expect(proofs.find(receivedOf(bad))).toEqual({
      settled: false,
      failure: "Blacklistable: account is blacklisted",
    });
  });

  test("have gas for 50 payers that burn all they can, without harm to one that does not", async () => {
    const good = await deployment.pay();
    const burners: SettleCall[] = [];
    for (let count = 0; count < 49; count++) {
      const burner = await deployment.pay();
      await deployment.makeGasBurner(burner.payment.payer);
      burners.push(burner);
    }
    const proofs = readSettlements(await settle([...burners, good]), network.facilitatorContract);
    expect(proofs.find(receivedOf(good))).toEqual({ settled: true });
    expect(burners.filter((call) => proofs.find(receivedOf(call))?.settled !== false)).toEqual([]);
  });

  test("that are reverted prove nothing of single payments", async () => {
    const call = await deployment.pay({ funds: 1n });
    const receipt = await settle([call]);
    expect(receipt.succeeded).toBe(false);
    expect(readSettlements(receipt, network.facilitatorContract).find(receivedOf(call))).toBeUndefined();
  });

  test("are broadcast in order in one request, whatever the node thinks of them", async () => {
    const signer = createLocalSigner(deployment.operatorKey);
    const call = await deployment.pay({ funds: 20_000n });
    const fees = estimateFees(await chain.head(), network);
    const first = await chain.transactionCount(signer.address);
    const signed = await Promise.all(
      [first, first + 1, first + 2].map((nonce) =>
        signer.signTransaction({
          chainId: network.chainId,
          nonce,
          ...settleTransaction([call], network),
          ...fees,
        }),
      ),
    );
    proxy.batches.length = 0;
    await chain.broadcast([...signed.map(({ raw }) => raw), "0x1234"]);
    expect(proxy.batches).toHaveLength(1);
    await expect.poll(() => chain.transactionCount(signer.address)).toBe(first + 3);
    const receipts = await chain.receipts([...signed.map(({ hash }) => hash), `0x${"12".repeat(32)}`]);
    expect(receipts.map((receipt) => receipt?.succeeded)).toEqual([true, false, false, undefined]);
    await chain.broadcast(signed.map(({ raw }) => raw));
    await chain.broadcast([]);
    expect(await chain.receipts([])).toEqual([]);
  });
});

describe("an account", () => {
  test("has a balance of native coins", async () => {
    expect(await chain.nativeBalance(accountOf("nobody").address)).toBe(0n);
    expect(await chain.nativeBalance(deployment.operator)).toBeGreaterThan(10n ** 18n);
  });

  test("has transactions that are mined, and others that wait", async () => {
    const signer = createLocalSigner(deployment.operatorKey);
    const call = await deployment.pay();
    const mined = await chain.transactionCount(signer.address);
    const { raw } = await signer.signTransaction({
      chainId: network.chainId,
      nonce: mined,
      ...settleTransaction([call], network),
      ...estimateFees(await chain.head(), network),
    });
    await deployment.holdMining();
    try {
      await chain.broadcast([raw]);
      await expect.poll(() => chain.pendingTransactionCount(signer.address), { interval: 5 }).toBe(mined + 1);
      expect(await chain.transactionCount(signer.address)).toBe(mined);
    } finally {
      await deployment.goOnMining();
    }
    await expect.poll(() => chain.transactionCount(signer.address), { interval: 5 }).toBe(mined + 1);
  });
});

describe("the hash of a block", () => {
  test("is that of its receipts, and there is none where there is no block", async () => {
    const { blockNumber, blockHash } = await settle([await deployment.pay()]);
    expect(await chain.blockHash(blockNumber)).toBe(blockHash);
    expect(await chain.blockHash(blockNumber + 1_000n)).toBeNull();
    await chain.blockHash(0n);
  });

  test.each<[string, unknown]>([
    ["another block", { number: "0x8", hash: `0x${"12".repeat(32)}` }],
    ["a block without a hash", { number: "0x7", hash: null }],
    ["half a hash", { number: "0x7", hash: `0x${"12".repeat(16)}` }],
    ["text", "0x7"],
  ])("is not read from %s", async (_, block) => {
    const node = await startStubNode(answering(() => block));
    const strange = createChain({
      network: { ...network, rpcUrls: [node.url] },
      operator: deployment.operator,
    });
    await expect(strange.blockHash(7n)).rejects.toThrow(UndeterminedError);
    await node.stop();
  });
});

test("the suggested tip is between the network's usual one and its limit", async () => {
  const node = await startStubNode(answering(() => "0x77359400"));
  const rpcUrls = [node.url] as const;
  const tipOf = (changes: Partial<NetworkConfig>) =>
    createChain({
      network: { ...network, rpcUrls, ...changes },
      operator: deployment.operator,
    }).suggestedTip();
  expect(await tipOf({})).toBe(2_000_000_000n);
  expect(await tipOf({ maxFeePerGas: 1_500_000_000n })).toBe(1_500_000_000n);
  expect(await tipOf({ usualTip: 30_000_000_000 })).toBe(30_000_000_000n);
  let asked = 0;
  node.behave((calls, response) => {
    asked++;
    sendJson(
      response,
      calls.map(({ id }) => ({ id, error: { code: -32601, message: "the method does not exist" } })),
    );
  });
  expect(await tipOf({})).toBe(1_000_000n);
  expect(asked).toBe(1);
  await node.stop();
});
