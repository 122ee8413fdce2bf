import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";
import type { Chain, Transaction } from "../../src/chain/chain.ts";
import { createChain } from "../../src/chain/create-chain.ts";
import { estimateFees } from "../../src/chain/fees.ts";
import type { Receipt } from "../../src/chain/logs-and-receipts.ts";
import { createLocalSigner } from "../../src/chain/signing/local-signer.ts";
import type { NetworkConfig } from "../../src/config/serve-config.ts";
import type { Hex } from "../../src/protocol/hex.ts";
import { deployContracts, type TestDeployment } from "./deployment.ts";
import { type Behaviour, forwardingTo, type StubNode, startStubNode } from "./stub-node.ts";

/** A deployment behind a recording proxy, and a chain that calls the proxy. */
export type ProxiedDeployment = {
  deployment: TestDeployment;
  proxy: StubNode;
  /** Its endpoint is the proxy. */
  network: NetworkConfig;
  chain: Chain;
  /** The proxy's behavior at the beginning of a test. */
  forward: Behaviour;
  /** The newest block when the test began. */
  startBlock(): bigint;
  sendAsOperator(transaction: Transaction): Promise<Receipt>;
};

/** The deployment for all tests in a file; it is restored after each test. */
export function useProxiedDeployment(): ProxiedDeployment {
  // Filled before the first test.
  const deployment = {} as TestDeployment;
  const proxy = {} as StubNode;
  const network = {} as NetworkConfig;
  const chain = {} as Chain;
  const forward: Behaviour = (...request) => forwardingTo(deployment.url)(...request);
  let snapshot: Hex;
  let startBlock: bigint;

  beforeAll(async () => {
    Object.assign(deployment, await deployContracts());
    Object.assign(proxy, await startStubNode(forward));
    Object.assign(network, deployment.network, { rpcUrls: [proxy.url] });
    Object.assign(chain, createChain({ network, operator: deployment.operator }));
  });
  afterAll(async () => {
    chain.close();
    await proxy.stop();
    await deployment.stop();
  });
  beforeEach(async () => {
    snapshot = await deployment.snapshot();
    startBlock = (await deployment.newestBlock()).number;
    proxy.behave(forward);
    proxy.batches.length = 0;
  });
  afterEach(() => deployment.revert(snapshot));

  return {
    deployment,
    proxy,
    network,
    chain,
    forward,
    startBlock: () => startBlock,
    async sendAsOperator(transaction) {
      const signer = createLocalSigner(deployment.operatorKey);
      const { raw, hash } = await signer.signTransaction({
        chainId: network.chainId,
        nonce: await chain.transactionCount(signer.address),
        ...transaction,
        ...estimateFees(await chain.head(), network),
      });
      await chain.broadcast([raw]);
      await expect.poll(async () => (await chain.receipts([hash]))[0], { interval: 5 }).toBeTruthy();
      const [receipt] = await chain.receipts([hash]);
      if (!receipt) throw new Error("the receipt is gone");
      return receipt;
    },
  };
}
