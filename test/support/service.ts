import type { RunningHarness, StartOptions } from "../../src/harness/run/running-harness.ts";
import { startHarness } from "../../src/harness/run/start-harness.ts";
import { resolveFacilitatorContracts } from "../../src/harness/setup/addresses.ts";
import type { AuthorizationTerms } from "../../src/methods/exact-eip3009/authorization.ts";
import { buildPaymentRequest } from "../../src/methods/exact-eip3009/eip3009-method.ts";
import { createLogger } from "../../src/observe/log/logger.ts";
import { harnessAccounts } from "../../src/payer/accounts.ts";
import { localOrganization } from "../../src/payer/test-keys.ts";
import type { TestPayerName } from "../../src/payer/test-payers.ts";
import type { Address, Hex } from "../../src/protocol/hex.ts";
import type { NetworkName } from "../../src/protocol/networks.ts";
import { requestJson } from "../../src/util/http-client.ts";
import { runningChain } from "./running-chain.ts";
import { signAs } from "./sign-as.ts";

/** A harness on any free port that only logs fatal errors. */
export function startTestHarness(
  options: Partial<StartOptions> & Pick<StartOptions, "networks">,
): Promise<RunningHarness> {
  return startHarness({
    facilitatorContracts: resolveFacilitatorContracts(),
    host: "127.0.0.1",
    port: 0,
    logger: createLogger("fatal"),
    ...options,
  });
}

/** Adds a second organization, paid at the admin's address on base. Returns its API key. */
export async function addRival({ organizations }: RunningHarness): Promise<string> {
  await organizations.create({ id: "org_rival", name: "Rival" });
  await organizations.setRecipient("org_rival", "base", harnessAccounts.admin.address);
  return (await organizations.createKey("org_rival", { scopes: ["verify", "settle"] })).key;
}

/** The body of a request, for tests that take it apart. */
// biome-ignore lint/suspicious/noExplicitAny: tests put invalid values into it on purpose
export type Body = any;

export type Order = {
  network?: NetworkName;
  payer?: TestPayerName;
  x402Version?: 1 | 2;
  amount?: bigint;
  /** Seconds relative to the chain's time. */
  validAfter?: number;
  validBefore?: number;
  terms?: Partial<Omit<AuthorizationTerms, "from">>;
};

/** The request body of a signed payment, by default of 0.01 USDC by the funded payer on base. */
export async function signedRequest(harness: RunningHarness, order: Order = {}): Promise<Body> {
  const { network = "base", payer = "funded", x402Version = 1, amount = 10_000n } = order;
  const chain = runningChain(harness, network);
  const now = await chain.now();
  const { authorization, signature } = await signAs(payer, {
    asset: chain.asset,
    chainId: chain.network.chainId,
    to: chain.facilitatorContract,
    value: amount,
    validAfter: order.validAfter === undefined ? 0n : now + BigInt(order.validAfter),
    validBefore: now + BigInt(order.validBefore ?? 600),
    ...order.terms,
  });
  return buildPaymentRequest({
    x402Version,
    network: chain.network,
    asset: chain.asset,
    payTo: chain.facilitatorContract,
    amount,
    resource: "https://merchant.example/resource",
    authorization,
    signature,
  });
}

export type Answer = { status: number; headers: Record<string, string | string[] | undefined>; body: Body };

/** Posts a body to verify or settle, by default with the local organization's key. */
export async function post(
  harness: RunningHarness,
  operation: "verify" | "settle",
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return requestJson(`${harness.description.facilitator.url}/${operation}`, {
    method: "POST",
    headers: { authorization: localOrganization.apiKey, ...headers },
    body,
  });
}

/** An account's balance of the asset, in its smallest unit. */
export async function balanceOf(
  harness: RunningHarness,
  account: Address,
  network: NetworkName = "base",
): Promise<bigint> {
  const chain = harness.chains[network];
  const data = `0x70a08231${account.slice(2).padStart(64, "0")}`;
  const result = await chain?.node.request("eth_call", { to: chain.asset.address, data }, "latest");
  return BigInt(result as Hex);
}

/** Sends a transaction from an account that the node impersonates, and mines it. */
export async function sendFrom(
  harness: RunningHarness,
  from: Address,
  to: Address,
  data: Hex,
  network: NetworkName = "base",
): Promise<void> {
  const node = harness.chains[network]?.node;
  await node?.request("anvil_impersonateAccount", from);
  await node?.request("anvil_setBalance", from, "0xde0b6b3a7640000");
  const hash = await node?.request("eth_sendTransaction", { from, to, data, gas: "0x493e0" });
  await node?.request("evm_mine");
  const receipt = (await node?.request("eth_getTransactionReceipt", hash)) as { status: string } | null;
  if (receipt?.status !== "0x1") throw new Error(`the transaction ${String(hash)} did not succeed`);
}
