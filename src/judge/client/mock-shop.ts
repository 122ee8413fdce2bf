import type { IncomingMessage, ServerResponse } from "node:http";
import { z } from "zod";
import type { ScenarioName } from "../../fixtures/cases/scenarios.ts";
import type { FixtureEngine } from "../../fixtures/engine/engine.ts";
import { methodNamed, shortNames } from "../../methods/method-lists.ts";
import { testKeys, testOrganizations } from "../../payer/test-keys.ts";
import { testPayers } from "../../payer/test-payers.ts";
import type { Address } from "../../protocol/hex.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import type { X402Version } from "../../protocol/requests.ts";
import { KitError } from "../../util/errors.ts";
import { nearest } from "../../util/text.ts";
import { goodsOf, type Offer, type ReceivedPayment } from "../scene/offers.ts";
import type { ShopScene } from "../scene/scene.ts";
import { createCaseShop } from "./case-shop.ts";
import { type ClientCase, clientCases } from "./client-cases.ts";

/** The limit of requests per shop, because its log keeps every one of them. */
const mostRequests = 1_000;

/** The price: 0.01 USDC. */
const price = 10_000n;

export type MockShopOptions = {
  /** The payment method's short name. */
  way?: string | undefined;
  network?: NetworkName | undefined;
  /** Both by default. */
  x402Version?: X402Version | undefined;
  /** The delay of the slow shop's response; 12 s by default, as in `judge client`. */
  slowMs?: number | undefined;
  /** The URL that the shop sells at, and one on another origin that reaches {@link MockShop.handle} with `elsewhere`. */
  resource: string;
  elsewhere: string;
  /** The facilitator's URL; ends in `/v1`. */
  facilitatorUrl: string;
};

/** A shop of `judge client` that settles with the fixtures. */
export type MockShop = ReturnType<typeof openMockShop>;

/**
 * Finds a case of `judge client`.
 *
 * @throws {KitError} if there is no case with this name; the error lists all names
 */
export function findClientCase(name: string): ClientCase {
  const found = clientCases.find((one) => one.name === name);
  if (found !== undefined) return found;
  const names = clientCases.map((one) => one.name);
  throw new KitError(`There is no case ${JSON.stringify(name)}; did you mean ${nearest(name, names, 1)}?`, {
    hints: [`The cases are those of judge client: ${names.join(", ")}`],
  });
}

/**
 * Opens the shop of a case for clients that pay as test payers.
 *
 * @throws {KitError} if the network is not served, or the protocol version has no such payment method
 */
export function openMockShop(tested: ClientCase, engine: FixtureEngine, options: MockShopOptions) {
  const { way = shortNames[0] ?? "", x402Version, slowMs = 12_000, resource, elsewhere } = options;
  const versions = ([1, 2] as const).filter(
    (version) => (x402Version ?? version) === version && methodNamed(way).versions.includes(version),
  );
  if (versions.length === 0) {
    throw new KitError(`The payment method ${way} does not exist in protocol version ${x402Version}`);
  }
  const { scene, submitted } = sceneOf(engine, { ...options, way });
  const { funded: payer } = testPayers;
  const goods = goodsOf(0, resource);
  const places = { resource, elsewhere };
  const shop = createCaseShop({
    tested,
    scene,
    versions,
    ...places,
    goods,
    payer,
    header: undefined,
    slowMs,
  });
  let requests = 0;
  return {
    goods,
    payer,
    /** @param path the last part of the URL; `elsewhere` on the other origin */
    async handle(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
      requests++;
      if (requests > mostRequests)
        return void response.writeHead(429).end(`More than ${mostRequests} requests`);
      if (path === "elsewhere") return shop.handleElsewhere(request, response);
      await shop.handle(request, response, path);
    },
    /** The facts about the client so far. A shop that settles late settles now. */
    async facts() {
      await shop.idle();
      if (tested.settlesLate === true) await shop.settleLate();
      return {
        payments: shop.log.payments,
        leaks: shop.leaks,
        transfers: [...(await settledBy(engine)), ...submitted],
        exchanges: shop.log.lines(),
      };
    },
  };
}

type MockTransfer = { network: string; asset: string; to: string; amount: string; transaction: string };

/** The scene of a shop whose facilitator and chains are the fixtures. */
function sceneOf(
  engine: FixtureEngine,
  { way, network: name, facilitatorUrl }: MockShopOptions & { way: string },
): { scene: ShopScene; submitted: readonly MockTransfer[] } {
  const { environment } = engine;
  const { networks } = environment;
  const { apiKey, organizationId } = testKeys.local;
  const submitted: MockTransfer[] = [];
  const network = networks.find((one) => one.name === (name ?? environment.network.name));
  if (network === undefined) {
    throw new KitError(`${name} is not served here: there are ${networks.map((one) => one.name).join(", ")}`);
  }
  const other = networks.find((one) => one !== network);
  const offerOn = (one: typeof network): Offer => ({
    method: methodNamed(way),
    network: one,
    asset: one.assets[0],
    amount: price,
    payTo: one.facilitatorContract,
    receiver: testOrganizations[organizationId].recipient,
    facilitator: one.facilitatorContract,
  });
  async function settleAs(scenario: ScenarioName, body: string): Promise<void> {
    engine.scenario(scenario);
    await engine.reply(requestTo("POST", "/v1/settle", body));
  }
  const scene: ShopScene = {
    offer: offerOn(network),
    otherNetwork: other && offerOn(other),
    otherAsset: async () => otherToken,
    facilitatorUrl,
    apiKey,
    studioUrl: undefined,
    // The fixtures only know their own transactions, so another submitter's is recorded here.
    async submit({
      signed: { asset, payTo: to, limit, nonce: transaction },
      network: written,
    }: ReceivedPayment) {
      submitted.push({ network: written, asset, to, amount: `${limit}`, transaction });
      return transaction;
    },
    cancel: ({ body }) => settleAs("settle.invalid_transaction_state.used_on_chain", body),
    settleAndLoseAnswer: ({ body }) => settleAs("settle.connection.answer_lost", body),
    now: async () => environment.now(),
    async holdBlocks() {
      engine.scenario("settle.pending.then_success");
      return { remove: async () => {} };
    },
  };
  return { scene, submitted };
}

/** A token that no test payer holds. */
const otherToken = {
  address: "0x00000000000000000000000000000000D0111a12",
  name: "Dollar",
  version: "2",
  decimals: 6,
} as const satisfies { address: Address } & Record<string, unknown>;

function requestTo(method: "GET" | "POST", path: string, body?: string) {
  const headers = { authorization: `Bearer ${testKeys.local.apiKey}`, "content-type": "application/json" };
  return { method, path, headers, body };
}

const settlementsSchema = z.object({
  settlements: z.array(
    z.object({
      network: z.string(),
      asset: z.string(),
      recipient: z.string(),
      value: z.string(),
      transaction: z.string(),
      state: z.string(),
    }),
  ),
});

/** The transfers of payments that the facilitator settled. A pending one counts, because it will be mined. */
async function settledBy(engine: FixtureEngine): Promise<MockTransfer[]> {
  const answer = await engine.reply(requestTo("GET", "/v1/settlements?limit=100"));
  const { settlements } = settlementsSchema.parse(answer.kind === "json" ? answer.body : undefined);
  return settlements
    .filter(({ state }) => state !== "failed")
    .map(({ network, asset, recipient: to, value: amount, transaction }) => ({
      network,
      asset,
      to,
      amount,
      transaction,
    }))
    .reverse();
}
