import { setTimeout as sleep } from "node:timers/promises";
import { encodeFunctionData } from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { x402FacilitatorAbi } from "../../../src/contracts/x402Facilitator.ts";
import type { HarnessChain } from "../../../src/harness/setup/prepare-chain.ts";
import { encodeSubmission } from "../../../src/methods/exact-eip3009/on-chain/token-calls.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { keccak256Text } from "../../../src/protocol/hex.ts";
import { requestJson } from "../../../src/util/http-client.ts";
import { accountOf, keyOf } from "../../support/key-accounts.ts";
import { runHere } from "../../support/run-here.ts";
import { type RunningCommand, startCommand, type Variables } from "../../support/serve/command.ts";
import { type DeployedChains, deployer, operator } from "../../support/serve/deployed-chains.ts";
import { signPayment, startDeployedShop } from "../../support/serve/shop.ts";
import { forwardingTo, startStubNode } from "../../support/stub-node.ts";

/*
 * `serve` as a process: what it tells Prometheus, and what it protects itself by.
 */

let deployed: DeployedChains<"base">;
let chain: HarnessChain;
let key: string;
beforeAll(async () => {
  ({ deployed, chain, key } = await startDeployedShop());
});
afterAll(() => deployed.stop());

async function startServing(changes: Variables = {}): Promise<RunningCommand & { url: string }> {
  const variables = { ...deployed.variables, CONFIRMATIONS: "base=1", ...changes };
  const command = startCommand(["serve"], variables, "/");
  return Object.assign(command, { url: urlIn(await command.logged(/"serving"/)) });
}

function urlIn(line: string): string {
  const { url }: { url: string } = JSON.parse(line);
  return url;
}

function post(url: string, body: unknown, headers: Record<string, string> = { authorization: key }) {
  return requestJson(url, { method: "POST", headers, body });
}

/** The value of a series: of the one line that begins so. */
function numberIn(metrics: string, series: string): number {
  const lines = metrics.split("\n").filter((line) => line.startsWith(`${series} `));
  expect(lines, series).toHaveLength(1);
  return Number(lines[0]?.slice(series.length + 1));
}

test("no transaction costs more than MAX_TRANSACTION_COST allows", async () => {
  const body = await signPayment(deployed);
  {
    await using command = await startServing({ MAX_TRANSACTION_COST: "base=0.000000001" });
    expect(await post(`${command.url}/settle`, body)).toMatchObject({ status: 503 });
    expect(await command.logged(/allow more per transaction/)).toContain("an operator cannot settle");
  }
  await using command = await startServing({ MAX_TRANSACTION_COST: "base=0.1" });
  expect((await post(`${command.url}/settle`, body)).body).toMatchObject({ success: true });
});

describe("metrics", () => {
  test("tell what was paid, how long it took, and how much gas money is left; and no secret", async () => {
    const node = await startStubNode(forwardingTo(chain.rpcUrl));
    const { host } = new URL(node.url);
    await using command = await startServing({
      BASE_RPC_URL: `http://user:hunter2@${host}/secret-of-the-url`,
      METRICS_PORT: "0",
    });
    const metricsUrl = urlIn(await command.logged(/"serving metrics"/));
    const body = await signPayment(deployed);
    expect((await post(`${command.url}/verify`, body)).body).toMatchObject({ isValid: true });
    expect((await post(`${command.url}/settle`, body)).body).toMatchObject({ success: true });
    expect((await post(`${command.url}/settle`, body)).body).toMatchObject({ success: false });

    const metrics = await (await fetch(metricsUrl)).text();
    const requests = (rest: string) => numberIn(metrics, `x402_requests_total{${rest}}`);
    expect(
      requests(
        'operation="verify",outcome="valid",reason="none",version="1",network="base",method="exact-eip3009"',
      ),
    ).toBe(1);
    expect(
      requests(
        'operation="settle",outcome="settled",reason="none",version="1",network="base",method="exact-eip3009"',
      ),
    ).toBe(1);
    const taken =
      'outcome="invalid",reason="invalid_transaction_state",version="1",network="base",method="exact-eip3009"';
    expect(requests(`operation="settle",${taken}`)).toBe(1);
    for (const of of [
      'verify_duration_seconds_count{outcome="valid"',
      'settle_duration_seconds_count{outcome="settled"',
    ]) {
      expect(numberIn(metrics, `x402_${of},network="base"}`)).toBe(1);
    }
    expect(numberIn(metrics, 'x402_requests_in_flight{operation="settle"}')).toBe(0);
    expect(numberIn(metrics, 'x402_settlements_in_flight{network="base"}')).toBe(0);
    expect(numberIn(metrics, 'x402_oldest_pending_settlement_seconds{network="base"}')).toBe(0);
    expect(numberIn(metrics, 'x402_network_ready{network="base"}')).toBe(1);
    const ofOperator = `{network="base",operator="${operator}"}`;
    const balance = BigInt(String(await chain.node.request("eth_getBalance", operator, "latest")));
    expect(numberIn(metrics, `x402_operator_balance_wei${ofOperator}`)).toBe(Number(balance));
    // 100 ETH, at some 0.0002 to 0.0003 each.
    expect(numberIn(metrics, `x402_operator_balance_transactions${ofOperator}`)).toBeGreaterThan(100_000);
    expect(numberIn(metrics, `x402_operator_balance_transactions${ofOperator}`)).toBeLessThan(100_000_000);
    const provider = `network="base",endpoint="1",provider="${host}"`;
    expect(numberIn(metrics, `x402_rpc_requests_total{${provider},purpose="send"}`)).toBe(1);
    expect(metrics).not.toMatch(/hunter2|secret-of-the-url/);

    command.kill("SIGTERM");
    expect((await command.ended).code).toBe(0);
    await expect(fetch(metricsUrl)).rejects.toThrow();
    await node.stop();
  });

  test("warn of gas money that will not last, as readiness does, while payments go on", async () => {
    await chain.setBalance(operator, 10n ** 17n);
    await using command = await startServing({ METRICS_PORT: "0", GAS_HORIZON_PAYMENTS: "10000000" });
    const metricsUrl = urlIn(await command.logged(/"serving metrics"/));
    const low = `x402_operator_gas_money_low{network="base",operator="${operator}"}`;
    expect(numberIn(await (await fetch(metricsUrl)).text(), low)).toBe(1);
    const readiness = await fetch(new URL("/readyz", command.url));
    expect(readiness.status).toBe(200);
    expect(await readiness.json()).toEqual({
      status: "ready",
      networks: { base: { ready: true, detail: `the gas money of ${operator} is running low` } },
    });
    expect((await post(`${command.url}/settle`, await signPayment(deployed))).body).toMatchObject({
      success: true,
    });
    await chain.setBalance(operator, 100n * 10n ** 18n);
  });

  test("show a network that is down, and a payment that hangs", async () => {
    await using command = await startServing({ METRICS_PORT: "0", OPTIMISM_RPC_URL: "http://127.0.0.1:1/" });
    const metricsUrl = urlIn(await command.logged(/"serving metrics"/));
    await chain.hold();
    const waiting = post(`${command.url}/settle`, await signPayment(deployed));
    const scrape = async () => (await fetch(metricsUrl)).text();
    await expect
      .poll(scrape, { interval: 100 })
      .toMatch(/x402_oldest_pending_settlement_seconds\{network="base"\} \d*\.\d+/);
    const metrics = await scrape();
    expect(numberIn(metrics, 'x402_settlements_in_flight{network="base"}')).toBe(1);
    expect(numberIn(metrics, 'x402_requests_in_flight{operation="settle"}')).toBe(1);
    expect(numberIn(metrics, 'x402_network_ready{network="optimism"}')).toBe(0);
    expect(
      numberIn(
        metrics,
        'x402_rpc_errors_total{network="optimism",endpoint="1",provider="127.0.0.1:1",error="connection"}',
      ),
    ).toBeGreaterThan(0);
    // That one network is down hides nothing of the other.
    expect(
      numberIn(metrics, `x402_operator_balance_wei{network="base",operator="${operator}"}`),
    ).toBeGreaterThan(0);
    await chain.release();
    expect((await waiting).body).toMatchObject({ success: true });
  });

  test("are served nowhere unless that was asked for; a port that is taken is said to be", async () => {
    await using command = await startServing();
    const port = new URL(command.url).port;
    const { code, stderr } = await runHere(["serve"], {
      ...deployed.variables,
      LOG_LEVEL: "silent",
      METRICS_PORT: port,
    });
    expect(code).toBe(1);
    expect(stderr).toContain(`The service cannot listen on port ${port} of 127.0.0.1`);
    expect(stderr).toContain("METRICS_PORT and METRICS_HOST say where");
  });
});

describe("a payment that a third party submits straight to the token", () => {
  test("is paid to its recipient by serve itself, when it has the recoverer's key", async () => {
    const { node, asset, setBalance } = chain;
    const recoverer = accountOf("recoverer").address;
    await setBalance(recoverer, 10n ** 17n);
    for (const sender of [deployer, harnessAccounts.treasury.address]) {
      await node.request("anvil_impersonateAccount", sender);
    }
    const grant = encodeFunctionData({
      abi: x402FacilitatorAbi,
      functionName: "grantRole",
      args: [keccak256Text("RECOVERER_ROLE"), recoverer],
    });
    await node.request("eth_sendTransaction", { from: deployer, to: deployed.contract, data: grant });
    await node.request("evm_mine");
    // Two endpoints must show the submission; both are this node's.
    await using command = await startServing({
      RECOVERER_PRIVATE_KEY: keyOf("recoverer"),
      BASE_RPC_URL: `${chain.rpcUrl},${chain.rpcUrl}/?second`,
    });

    await chain.hold();
    const body = await signPayment(deployed);
    const sent = async () => ((await node.request("txpool_status")) as { pending: string }).pending !== "0x0";
    const settling = post(`${command.url}/settle`, body);
    while (!(await sent())) await sleep(10);
    const { authorization, signature } = body.paymentPayload.payload;
    const data = encodeSubmission(authorization, signature);
    // It pays more for its place, and so is mined before ours.
    const fees = { maxPriorityFeePerGas: "0x2540be400", maxFeePerGas: "0x174876e800" };
    const stranger = harnessAccounts.treasury.address;
    await node.request("eth_sendTransaction", {
      from: stranger,
      to: asset.address,
      data,
      gas: "0x493e0",
      ...fees,
    });
    await node.request("evm_mine");
    await chain.release();
    const mining = setInterval(() => void node.request("evm_mine").catch(() => {}), 200);
    expect((await settling).body).toMatchObject({ success: true });
    clearInterval(mining);
    expect(await command.logged(/"a payment was recovered"/)).toContain('"network":"base"');
  });
});

describe("rate limits", () => {
  /** Gets a verdict at once. */
  const unknownVersion = { x402Version: 3 };

  test("let one key settle and verify 2,000 payments at once", async () => {
    await using command = await startServing();
    for (const operation of ["verify", "settle"]) {
      const statuses = await Promise.all(
        Array.from(
          { length: 2_000 },
          async () => (await post(`${command.url}/${operation}`, unknownVersion)).status,
        ),
      );
      // 503 is the word of a process that its machine leaves too little time, whoever asks.
      expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([]);
      await expect
        .poll(async () => (await post(`${command.url}/${operation}`, unknownVersion)).status)
        .toBe(200);
    }
  });

  test("are what the variables say, for a key and for an address", async () => {
    await using command = await startServing({ RATE_LIMIT_KEY: "1/5", RATE_LIMIT_ADDRESS: "1/2" });
    const statusOf = async (headers?: Record<string, string>): Promise<number> => {
      const { status } = await post(`${command.url}/verify`, unknownVersion, headers);
      // As above: it is to be asked again.
      return status === 503 ? statusOf(headers) : status;
    };
    const statusesOf = async (count: number, headers?: Record<string, string>) =>
      (await Promise.all(Array.from({ length: count }, () => statusOf(headers)))).sort();
    const ofKey = await statusesOf(2);
    expect(ofKey).toEqual([200, 200]);
    expect((await statusesOf(6)).filter((status) => status === 429).length).toBeGreaterThan(0);
    expect(
      (await statusesOf(8, { authorization: "wrong" })).filter((status) => status === 401),
    ).not.toHaveLength(8);
  });
});
