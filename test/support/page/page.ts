import { setupWorker } from "msw/browser";
import { privateKeyToAccount } from "viem/accounts";
import {
  createFixtures,
  defaultContracts,
  type ScenarioName,
  type TestPayerName,
  testKeys,
  testPayers,
} from "../../../src/fixtures/index.ts";
import { buildPaymentRequest, networks, signAuthorization } from "../../../src/methods/index.ts";

/*
 * A client in a browser: it signs with viem and calls a facilitator that exists only in msw's service worker. Compiled
 * with the types of browsers, without those of Node.
 */

const baseUrl = "https://facilitator.example";
const fixtures = createFixtures({ baseUrl, networks: ["base"] });

/** One payment as the client sees it: the response to each call, or the name of the error that it failed with. */
type Payment = { verify: unknown; settle: unknown; again?: unknown };

/** Pays 0.01 USDC as a test payer. If settle gets no response, it sends the same payment again. */
async function pay(payer: TestPayerName, scenario?: ScenarioName): Promise<Payment> {
  const account = privateKeyToAccount(testPayers[payer].privateKey);
  const { usdc: asset, chainId } = networks.base;
  const payTo = defaultContracts.mainnet;
  const amount = 10_000n;
  const validBefore = BigInt(Math.floor(Date.now() / 1_000) + 60);
  const signed = await signAuthorization(account, { asset, chainId, to: payTo, value: amount, validBefore });
  const network = networks.base;
  const resource = `${location.origin}/report`;
  const body = buildPaymentRequest({
    x402Version: 2,
    network,
    asset,
    payTo,
    amount,
    resource,
    ...signed,
  });
  if (scenario !== undefined) fixtures.scenario(scenario);
  const verify = await ask("verify", body);
  const settle = await ask("settle", body);
  return typeof settle === "string"
    ? { verify, settle, again: await ask("settle", body) }
    : { verify, settle };
}

async function ask(operation: "verify" | "settle", body: unknown): Promise<unknown> {
  try {
    const response = await fetch(`${baseUrl}/v1/${operation}`, {
      method: "POST",
      headers: { authorization: testKeys.local.apiKey, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return await response.json();
  } catch (error) {
    return error instanceof Error ? error.name : String(error);
  }
}

/** Pays, and adds a line for it to the page. */
async function show(payer: TestPayerName, scenario?: ScenarioName): Promise<Payment> {
  const payment = await pay(payer, scenario);
  const line = document.createElement("pre");
  line.textContent = `${payer} ${scenario ?? ""}\n${JSON.stringify(payment, null, 1)}`;
  document.body.append(line);
  return payment;
}

await setupWorker(...fixtures.handlers).start({ quiet: true, onUnhandledFrame: "bypass" });
Object.assign(globalThis, {
  page: { pay: show, asked: () => fixtures.calls.map(({ operation, scenario }) => [operation, scenario]) },
});
document.title = "ready";
