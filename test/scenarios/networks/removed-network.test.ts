import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { readNetworkData } from "../../../src/config/network-file.ts";
import { resolveFacilitatorContracts } from "../../../src/harness/setup/addresses.ts";
import { startChains } from "../../../src/harness/setup/chains.ts";
import { networks } from "../../../src/protocol/networks.ts";
import { settlementId } from "../../../src/protocol/signed-payment.ts";
import { requestJson } from "../../../src/util/http-client.ts";
import { type Composition, compose, type Running } from "../../support/composition.ts";
import type { Body } from "../../support/service.ts";

/*
 * A network that is in no network file any more, while payments of it are under way, or paid and not delivered yet.
 */

const avalanche = readNetworkData({
  name: "avalanche",
  caip2: "eip155:43114",
  tier: "testnet",
  token: {
    address: "0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E",
    name: "USD Coin",
    version: "2",
    decimals: 6,
  },
  confirmations: 1,
  blockTimeMs: 2_000,
  maxFeeGwei: "100",
});

let chains: Awaited<ReturnType<typeof startChains>>;
let composition: Composition;

beforeAll(async () => {
  chains = await startChains({
    networks: ["avalanche"],
    knownNetworks: avalanche,
    facilitatorContracts: resolveFacilitatorContracts(),
  });
  composition = await compose(chains.chains.avalanche);
});
afterAll(async () => {
  await composition?.close();
  await chains?.stop();
});
beforeEach(() => composition.openDirectory());
afterEach(() => composition.stopAll());

const withoutIt = () =>
  composition.start({
    network: composition.configuration({ ...networks.optimism, rpcUrls: ["http://127.0.0.1:9"] }),
    settleWaitMs: 300,
  });

async function stateOf({ url, key }: Running, body: Body): Promise<unknown> {
  const { from, nonce } = body.paymentPayload.payload.authorization;
  const id = settlementId(composition.chain.network.chainId, composition.chain.asset.address, from, nonce);
  return (await requestJson(`${url}/settlements/${id}`, { headers: { authorization: key } })).body;
}

const answer = async (running: Running, operation: "verify" | "settle", body: Body) =>
  (await composition.post(running, operation, body)).body;

describe.each([1, 2] as const)("version %i", (x402Version) => {
  const sign = () => composition.payment("funded", 600, x402Version);
  const pending = { situation: "pending", nextAction: "poll" };

  test("payments of it are judged by their claims, and go on when it is back", async () => {
    const before = await composition.recipientBalance();
    let running = await composition.start({ settleWaitMs: 300 });
    const delivered = await sign();
    await expect.poll(() => answer(running, "settle", delivered)).toMatchObject({ success: true });
    const undelivered = await sign();
    const release = await composition.holdMining();
    await expect.poll(() => answer(running, "settle", undelivered)).toMatchObject(pending);
    await release();
    await expect.poll(() => stateOf(running, undelivered)).toMatchObject({ state: "settled" });
    const releaseAgain = await composition.holdMining();
    const inFlight = await sign();
    await expect.poll(() => answer(running, "settle", inFlight)).toMatchObject(pending);
    await composition.stop(running);

    running = await withoutIt();
    expect(await answer(running, "verify", inFlight)).toMatchObject({ isValid: true });
    expect(await answer(running, "settle", inFlight)).toMatchObject(pending);
    expect(await stateOf(running, inFlight)).toMatchObject({ state: "submitted", network: "avalanche" });
    expect(await answer(running, "verify", undelivered)).toMatchObject({ isValid: true });
    expect(await answer(running, "settle", undelivered)).toMatchObject({ success: true });
    for (const body of [undelivered, delivered])
      expect(await answer(running, "settle", body)).toMatchObject({ situation: "settled_before" });
    const fresh = await sign();
    expect(await answer(running, "settle", fresh)).toMatchObject({
      success: false,
      situation: "network_not_enabled",
    });
    const listed = await requestJson(`${running.url}/settlements`, {
      headers: { authorization: running.key },
    });
    expect(Object(listed.body).settlements).toHaveLength(3);
    await composition.stop(running);

    await releaseAgain();
    running = await composition.start();
    expect(await answer(running, "settle", inFlight)).toMatchObject({ success: true });
    expect(await answer(running, "settle", fresh)).toMatchObject({ success: true });
    expect(await composition.recipientBalance()).toBe(before + 40_000n);
  });
});
