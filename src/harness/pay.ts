import { KitError } from "../errors/base.ts";
import { buildPaymentRequest } from "../protocol/build-request.ts";
import { type NetworkName, networks } from "../protocol/networks.ts";
import type { X402Version } from "../protocol/requests.ts";
import type { HarnessDescription } from "./description.ts";
import { type JsonResponse, requestJson } from "./http-json.ts";
import { createLocalRpc } from "./local-rpc.ts";
import { signAs } from "./sign-as.ts";
import type { TestPayerName } from "./test-payers.ts";

/** What to pay, and who pays. */
export type PaymentOrder = {
  network: NetworkName;
  payer: TestPayerName;
  /** In the asset's smallest unit. */
  amount: bigint;
  x402Version: X402Version;
  /** Seconds from the chain's time until the authorization expires. */
  validForSeconds: number;
};

/** What the service answered to one payment, and how long both answers took together. */
export type PaymentReport = { verify: JsonResponse; settle: JsonResponse; tookMs: number };

/** The body with which a payment of a test payer is verified and settled on a running harness. */
export async function orderPayment(harness: HarnessDescription, order: PaymentOrder): Promise<object> {
  const { network, payer, amount, x402Version, validForSeconds } = order;
  const running = harness.networks[network];
  if (running === undefined) {
    throw new KitError(`${network} is not running; running: ${Object.keys(harness.networks).join(", ")}`);
  }
  const { asset, chainId, facilitatorContract, rpcUrl } = running;
  const { authorization, signature } = await signAs(payer, {
    asset,
    chainId,
    to: facilitatorContract,
    value: amount,
    validBefore: (await chainTime(rpcUrl)) + BigInt(validForSeconds),
  });
  return buildPaymentRequest({
    x402Version,
    network: networks[network],
    asset,
    payTo: facilitatorContract,
    amount,
    resource: "https://merchant.example/resource",
    authorization,
    signature,
  });
}

/** Pays once on a running harness, as an x402 server would: verify, then settle, over HTTP. */
export async function pay(harness: HarnessDescription, order: PaymentOrder): Promise<PaymentReport> {
  const body = await orderPayment(harness, order);
  const headers = { authorization: harness.organization.apiKey };
  const { url } = harness.facilitator;
  const from = performance.now();
  const verify = await requestJson(`${url}/verify`, { method: "POST", headers, body });
  const settle = await requestJson(`${url}/settle`, { method: "POST", headers, body });
  return { verify, settle, tookMs: performance.now() - from };
}

async function chainTime(rpcUrl: string): Promise<bigint> {
  const block = await createLocalRpc(rpcUrl).request("eth_getBlockByNumber", "latest", false);
  const timestamp = typeof block === "object" && block !== null ? Reflect.get(block, "timestamp") : undefined;
  if (typeof timestamp !== "string") throw new KitError(`The node at ${rpcUrl} has no newest block`);
  return BigInt(timestamp);
}
