import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { encodeFunctionData, keccak256, toHex } from "viem";
import { askNode } from "../../src/chain/rpc/calls.ts";
import { createLocalSigner } from "../../src/chain/signing/local-signer.ts";
import type { NetworkConfig } from "../../src/config/serve-config.ts";
import { mockPermit2Abi } from "../../src/contracts/mockPermit2.ts";
import { mockUsdcAbi } from "../../src/contracts/mockUsdc.ts";
import { x402FacilitatorAbi } from "../../src/contracts/x402Facilitator.ts";
import { createLedger } from "../../src/ledger/create-ledger.ts";
import { openDatabase } from "../../src/ledger/database/open-database.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";
import type { Recovery } from "../../src/ledger/recoveries.ts";
import { approvalExtension, approvalOf } from "../../src/methods/approval.ts";
import { transactionExtension } from "../../src/methods/approval-transaction.ts";
import { buildBody } from "../../src/methods/build-request.ts";
import {
  type Authorization,
  type AuthorizationSigner,
  signAuthorization,
} from "../../src/methods/exact-eip3009/authorization.ts";
import { buildPaymentRequest } from "../../src/methods/exact-eip3009/eip3009-method.ts";
import {
  encodeCancellation,
  encodeSubmission,
} from "../../src/methods/exact-eip3009/on-chain/token-calls.ts";
import { methodOf } from "../../src/methods/methods.ts";
import { askNextApproval, askNextTransaction } from "../../src/methods/on-chain/payer-state.ts";
import { encodeProxySettle } from "../../src/methods/permit2/on-chain/permit2-calls.ts";
import { bitOf } from "../../src/methods/permit2/on-chain/permit2-state.ts";
import { type Permit, permit2Address } from "../../src/methods/permit2/permit.ts";
import { permitOf, permitPayment } from "../../src/methods/permit2/permit2-payload.ts";
import { type ApprovalTerms, signApproval } from "../../src/methods/permit2/sign-approval.ts";
import {
  signApprovalTransaction,
  type TransactionTerms,
} from "../../src/methods/permit2/sign-approval-transaction.ts";
import { signPermit } from "../../src/methods/permit2/sign-permit.ts";
import { createLogger } from "../../src/observe/log/logger.ts";
import { harnessAccounts } from "../../src/payer/accounts.ts";
import { createPayerSigner, signerAs } from "../../src/payer/sign-as.ts";
import { type TestPayerName, testPayers } from "../../src/payer/test-payers.ts";
import type { Address, Hex } from "../../src/protocol/hex.ts";
import type { Asset } from "../../src/protocol/networks.ts";
import type { Service } from "../../src/service/service.ts";
import { type Composition, compose, patientWaitMs, type Running } from "./composition.ts";
import { makeDatabaseFolder } from "./database-folder.ts";
import { parseBody } from "./example-payment.ts";
import { openMigrated } from "./open-migrated.ts";
import type { Body } from "./service.ts";
import { signAs } from "./sign-as.ts";
import { createWrappedService, type Wrap } from "./wrapped-service.ts";

/** The amount of every payment here, in the asset's smallest unit. */
export const value = 10_000n;

export type Call = { from: Address; to: Address; data: Hex };

/** A chain, services on it, and other senders who interfere with their payments. Every test has its own wallets. */
export type RecoveryScene = Omit<Composition, "openDirectory"> & {
  /** Creates a directory and new recipients; the database is in the directory unless another URL is given. */
  openDirectory(databaseUrl?: string): Promise<void>;
  databaseUrl(): string;
  /** The organization's recipient; its rival has another one. */
  recipient(): Address;
  rivalRecipient(): Address;
  /** Starts a service on the test's database, with the recoverer's key unless `recovers` is false. */
  startService(options?: {
    network?: Partial<NetworkConfig>;
    settleWaitMs?: number;
    recovers?: boolean;
    wrap?: Wrap;
  }): Promise<Running & { rivalKey: string }>;
  /**
   * A signed payment; `terms` override parts of it, for example to sign other terms under the same nonce. With `payTo`,
   * it is requested and signed for a direct payment to that address.
   */
  sign(
    payer: TestPayerName | { address: Address; signer: AuthorizationSigner },
    terms?: Partial<Pick<Authorization, "to" | "value" | "nonce">>,
    payTo?: Address,
  ): Promise<Body>;
  /** Like `sign`, by Permit2. With `max` it uses scheme "upto", and settle takes `amount` of it. */
  signPermit(
    payer: TestPayerName,
    terms?: Partial<Pick<Permit, "to" | "token" | "nonce" | "deadline" | "amount">> & {
      payTo?: Address;
      max?: bigint;
      /** The token to pay with; USDC by default. */
      asset?: Asset;
      /** An approval to send along, with these members. */
      approval?: Partial<Omit<ApprovalTerms, "asset" | "chainId">>;
      /** An approval by the payer's own transaction, by default for exactly the amount. */
      approvalTransaction?: Partial<TransactionTerms>;
    },
  ): Promise<Body>;
  /** The call with which anyone can submit the approval that comes with a payment. */
  approvalOf(body: Body): Call;
  /** An account that has nothing to do with payments, and can send transactions. */
  stranger(): Address;
  idOf(body: Body): Hex;
  /** Settles, and waits until the transaction is in the node's pool; mining must be held. */
  settleInPool(running: Running, body: Body): Promise<{ answer: ReturnType<Composition["post"]> }>;
  /** Settles a payment while other senders' calls are mined right before our transaction. */
  settleBehind(running: Running, body: Body, ...calls: readonly Call[]): ReturnType<Composition["post"]>;
  /** Sends a call that will be mined before everything in the pool; does not mine it. */
  sendAhead(call: Call): Promise<Hex>;
  /** Calls that anyone can make. */
  submission(body: Body): Call;
  cancellation(body: Body): Promise<Call>;
  /** Calls by the token's owner, and by the contract's pauser and admin. */
  ofToken(functionName: "pause" | "unpause"): Call;
  ofPauser(functionName: "pause" | "unpause"): Call;
  ofAdmin(functionName: "grantRole" | "revokeRole", role: string, account: Address): Call;
  /** The admin's call that limits how much of the token the contract forwards. */
  ofAdminLimit(limit: bigint): Call;
  /** Settles, has another sender submit the payment, and waits until the service's forward is in the node's pool. */
  forwardInPool(
    running: Running,
    body: Body,
  ): Promise<{ answer: ReturnType<Composition["post"]>; release(): Promise<void> }>;
  /** Mines a block every 100 ms until the returned function is called. */
  mineSteadily(): () => void;
  /** Mines a call at once. */
  mine(call: Call): Promise<Hex>;
  /** The outcome of a settlement, as the service reports it. */
  settlement(
    running: Running,
    body: Body,
  ): Promise<{ state: string; transaction: Hex; failure: string | null }>;
  /** Resolves when the service reports a settlement in this state. */
  untilState(running: Running, body: Body, state: string): Promise<void>;
  /** The recovery of a payment in the ledger. */
  recoveryOf(body: Body): Promise<Recovery | null>;
  recovererTransactions(): Promise<number>;
  /** The facilitator contract's token balance. */
  stranded(): Promise<bigint>;
  /** Resolves when each running service has gone through all failures several more times. */
  severalRounds(): Promise<void>;
  /** Ends one of the services. */
  end(running: Running): Promise<void>;
  /** The number of transactions in the node's pool. */
  inPool(): Promise<number>;
  /** Resolves when `count` transactions are in the pool. */
  untilInPool(count: number): Promise<void>;
  /** Repeats the settle until the lease of a dead process has expired; resolves with true for a success. */
  settleUntilDecided(running: Running, body: Body): Promise<boolean>;
  /** Deletes the test's database and ends its services. */
  clear(): Promise<void>;
};

/** The body of a settle that takes this amount of a payment. */
export function takingOf(body: Body, amount: bigint): Body {
  const { paymentRequirements, ...rest } = body;
  return { ...rest, paymentRequirements: { ...paymentRequirements, amount: `${amount}` } };
}

export async function composeRecovery(): Promise<RecoveryScene> {
  const composition = await compose();
  const { chain, configuration, balanceOf, post } = composition;
  const { asset, facilitatorContract, network, node } = chain;
  /** The rounds over the failures that each service has begun. */
  const services = new Map<Service, () => number>();
  const strangers = harnessAccounts.treasury.address;
  let directory = "";
  let databaseUrl: string | undefined;
  let mining: NodeJS.Timeout | undefined;
  let recipient: Address = "0x";
  let rivalRecipient: Address = "0x";
  await node.batch(
    [harnessAccounts.admin, harnessAccounts.pauser, harnessAccounts.recoverer].map(({ address }) => [
      "anvil_impersonateAccount",
      address,
    ]),
  );

  async function newAddress(): Promise<Address> {
    return toHex(crypto.getRandomValues(new Uint8Array(20)));
  }

  const scene: RecoveryScene = {
    ...composition,
    databaseUrl: () => databaseUrl ?? `sqlite:${join(directory, "ledger.sqlite")}`,
    recipient: () => recipient,
    rivalRecipient: () => rivalRecipient,

    async openDirectory(url) {
      databaseUrl = url;
      directory = makeDatabaseFolder();
      recipient = await newAddress();
      rivalRecipient = await newAddress();
    },

    async startService({ network: changes, settleWaitMs = patientWaitMs, recovers = true, wrap } = {}) {
      let rounds = 0;
      const countRounds = (own: Ledger): Ledger => {
        const ledger = wrap?.ledger?.(own) ?? own;
        const { recoveries } = ledger;
        const takeDueFailures: typeof recoveries.takeDueFailures = (...given) => {
          rounds++;
          return recoveries.takeDueFailures(...given);
        };
        return { ...ledger, recoveries: { ...recoveries, takeDueFailures } };
      };
      const service = await createWrappedService(
        { ...wrap, ledger: countRounds },
        {
          networks: [configuration({ blockTimeMs: 50, ...changes })],
          signers: [createLocalSigner(harnessAccounts.operator.privateKey)],
          sponsor: createLocalSigner(harnessAccounts.sponsor.privateKey),
          recoverer: recovers ? createLocalSigner(harnessAccounts.recoverer.privateKey) : undefined,
          database: await openMigrated(scene.databaseUrl()),
          apiKeyPepper: "test",
          settleWaitMs,
          leaseMs: 1_000,
          logger: createLogger(process.env.RECOVERY_LOG ?? "silent"),
        },
      );
      services.set(service, () => rounds);
      const { organizations } = service;
      if ((await organizations.find("org")) === null) {
        for (const [id, wallet] of [
          ["org", recipient],
          ["rival", rivalRecipient],
        ] as const) {
          await organizations.create({ id, name: id });
          await organizations.setRecipient(id, "base", wallet);
        }
      }
      const { key } = await organizations.createKey("org", { scopes: ["verify", "settle"] });
      const { key: rivalKey } = await organizations.createKey("rival", { scopes: ["verify", "settle"] });
      await service.start();
      const origin = await service.listen({ host: "127.0.0.1", port: 0 });
      return { service, url: `${origin}/v1`, key, rivalKey };
    },

    async sign(payer, terms = {}, payTo = facilitatorContract) {
      const signAsPayer = (terms: Parameters<typeof signAs>[1]) =>
        typeof payer === "string"
          ? signAs(payer, terms)
          : signAuthorization(payer.signer, { ...terms, from: payer.address });
      const signed = await signAsPayer({
        asset,
        chainId: network.chainId,
        to: payTo,
        value,
        validBefore: (await chain.now()) + 600n,
        ...terms,
      });
      return buildPaymentRequest({
        x402Version: 1,
        network,
        asset,
        payTo,
        amount: value,
        resource: "https://merchant.example/resource",
        ...signed,
      });
    },

    stranger: () => strangers,

    idOf: (body) => parseBody(body).settlementId,

    async signPermit(
      payer,
      { payTo = facilitatorContract, max, amount = value, asset: paid = asset, ...given } = {},
    ) {
      const { approval, approvalTransaction, ...terms } = given;
      const signed = permitPayment(
        await signPermit(signerAs(payer), {
          ...{ chainId: network.chainId, token: paid.address, amount: max ?? amount, to: payTo },
          deadline: (await chain.now()) + 600n,
          ...(max !== undefined && { facilitator: facilitatorContract }),
          ...terms,
        }),
      );
      const method = methodOf(signed);
      const extra = method.extra({ name: network.name, facilitatorContract, assets: [paid] }) ?? {};
      const parts = {
        ...{ x402Version: 2 as const, network, asset: paid, payTo, scheme: method.scheme, extra },
      };
      const resource = "https://merchant.example/resource";
      const signer = createPayerSigner(testPayers[payer].privateKey);
      const ask = askNode(chain.rpcUrl);
      const extensions = {
        ...(approval && {
          [approvalExtension]: {
            info: await signApproval(signer, {
              ...{ asset: paid, chainId: network.chainId, from: signed.payer, amount: signed.limit },
              ...{ nonce: await askNextApproval(ask, signed), deadline: signed.window.last },
              ...approval,
            }),
          },
        }),
        ...(approvalTransaction && {
          [transactionExtension]: {
            info: await signApprovalTransaction(signer, {
              ...{ asset: paid.address, chainId: network.chainId, amount: signed.limit },
              ...(await askNextTransaction(ask, signed.payer)),
              ...approvalTransaction,
            }),
          },
        }),
      };
      const body = buildBody({ ...parts, resource, amount: max ?? amount }, method.write(signed), extensions);
      return takingOf(body, amount);
    },

    approvalOf(body) {
      const approval = approvalOf(parseBody(body).payment);
      if (typeof approval !== "object") throw new Error("no approval comes with this payment");
      const { from, spender, amount, deadline, signature } = approval;
      const args = [from, spender, amount, deadline, signature] as const;
      const data = encodeFunctionData({ abi: mockUsdcAbi, functionName: "permit", args });
      return { from: strangers, to: asset.address, data };
    },

    async settleInPool(running, body) {
      const waiting = await scene.inPool();
      const answer = post(running, "settle", body);
      let early: unknown;
      answer.then(({ body: answered }) => {
        early = answered;
      });
      while ((await scene.inPool()) <= waiting) {
        if (early !== undefined) throw new Error(`nothing was sent: ${JSON.stringify(early)}`);
        await sleep(10);
      }
      return { answer };
    },

    async settleBehind(running, body, ...calls) {
      const release = await composition.holdMining();
      const { answer } = await scene.settleInPool(running, body);
      for (const call of calls) await scene.sendAhead(call);
      await node.request("evm_mine");
      await release();
      return answer;
    },

    async sendAhead(call) {
      const hash = await node.request("eth_sendTransaction", {
        ...call,
        gas: "0x493e0",
        maxPriorityFeePerGas: "0x2540be400",
        maxFeePerGas: "0x174876e800",
      });
      return hash as Hex;
    },

    submission(body) {
      const { authorization, signature } = body.paymentPayload.payload;
      if (authorization === undefined) {
        const permit = permitOf(parseBody(body).payment);
        const data = encodeProxySettle(permit, signature, permit.amount);
        return { from: strangers, to: permit.spender, data };
      }
      return { from: strangers, to: asset.address, data: encodeSubmission(authorization, signature) };
    },

    async cancellation(body) {
      const { payment } = parseBody(body);
      if (payment.nonceSpace === permit2Address) {
        const { word, bit } = bitOf(payment);
        await node.request("anvil_impersonateAccount", payment.payer);
        await chain.setBalance(payment.payer, 10n ** 18n);
        const args = [word, bit] as const;
        const functionName = "invalidateUnorderedNonces";
        const data = encodeFunctionData({ abi: mockPermit2Abi, functionName, args });
        return { from: payment.payer, to: permit2Address, data };
      }
      const { from, nonce } = body.paymentPayload.payload.authorization;
      const payer = Object.values(testPayers).find(({ address }) => address === from);
      if (payer === undefined) throw new Error("only test payers can cancel");
      const data = await encodeCancellation(payer.privateKey, { asset, chainId: network.chainId }, nonce);
      return { from: strangers, to: asset.address, data };
    },

    ofToken: (functionName) => ({
      from: strangers,
      to: asset.address,
      data: encodeFunctionData({ abi: mockUsdcAbi, functionName }),
    }),
    ofPauser: (functionName) => ({
      from: harnessAccounts.pauser.address,
      to: facilitatorContract,
      data: encodeFunctionData({ abi: x402FacilitatorAbi, functionName }),
    }),
    ofAdmin: (functionName, role, account) => ({
      from: harnessAccounts.admin.address,
      to: facilitatorContract,
      data: encodeFunctionData({
        abi: x402FacilitatorAbi,
        functionName,
        args: [keccak256(toHex(role)), account],
      }),
    }),

    ofAdminLimit: (limit) => ({
      from: harnessAccounts.admin.address,
      to: facilitatorContract,
      data: encodeFunctionData({
        abi: x402FacilitatorAbi,
        functionName: "setForwardLimit",
        args: [asset.address, limit],
      }),
    }),

    async forwardInPool(running, body) {
      const release = await composition.holdMining();
      const { answer } = await scene.settleInPool(running, body);
      await scene.sendAhead(scene.submission(body));
      await node.request("evm_mine");
      await scene.untilInPool(1);
      return { answer, release };
    },

    mineSteadily() {
      clearInterval(mining);
      mining = setInterval(() => void node.request("evm_mine").catch(() => {}), 100);
      return () => clearInterval(mining);
    },

    async mine(call) {
      const hash = await scene.sendAhead(call);
      await node.request("evm_mine");
      const receipt = await node.request("eth_getTransactionReceipt", hash);
      if ((receipt as { status?: string } | null)?.status !== "0x1")
        throw new Error("the call did not succeed");
      return hash;
    },

    async settlement(running, body) {
      const response = await fetch(`${running.url}/settlements/${scene.idOf(body)}`, {
        headers: { authorization: running.key },
      });
      return (await response.json()) as { state: string; transaction: Hex; failure: string | null };
    },

    async untilState(running, body, state) {
      for (let last = ""; last !== state; ) {
        await sleep(20);
        last = (await scene.settlement(running, body)).state;
      }
    },

    async recoveryOf(body) {
      const db = await openDatabase({ url: scene.databaseUrl() });
      try {
        const ledger = createLedger({ db, instanceId: crypto.randomUUID(), now: Date.now });
        return (await ledger.recoveries.findFailure(scene.idOf(body)))?.recovery ?? null;
      } finally {
        await db.destroy();
      }
    },

    async recovererTransactions() {
      const { address } = harnessAccounts.recoverer;
      return Number((await node.request("eth_getTransactionCount", address, "latest")) as Hex);
    },

    stranded: () => balanceOf(facilitatorContract),

    async severalRounds() {
      await Promise.all(
        [...services.values()].map(async (rounds) => {
          const enough = rounds() + 5;
          while (rounds() < enough) await sleep(10);
        }),
      );
    },

    async end({ service }) {
      services.delete(service);
      await service.close();
    },

    async inPool() {
      return Number(((await node.request("txpool_status")) as { pending: Hex }).pending);
    },

    async untilInPool(count) {
      while ((await scene.inPool()) < count) await sleep(10);
    },

    async settleUntilDecided(running, body) {
      for (;;) {
        const { status, body: answer } = await post(running, "settle", body);
        if (status === 200) return (answer as { success: boolean }).success;
        await sleep(20);
      }
    },

    async clear() {
      clearInterval(mining);
      for (const service of services.keys()) await service.close();
      services.clear();
      await rm(directory, { recursive: true });
    },
  };
  return scene;
}
