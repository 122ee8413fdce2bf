import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { createHarness } from "../../../src/harness/index.ts";
import { openShops } from "../../../src/judge/client/case-shop.ts";
import { clientCases } from "../../../src/judge/client/client-cases.ts";
import { judgeClientFacts, runClientCase } from "../../../src/judge/client/judge-client.ts";
import { runCases } from "../../../src/judge/frame/run-cases.ts";
import { challengeOf } from "../../../src/judge/scene/offers.ts";
import { openScene } from "../../../src/judge/scene/scene.ts";
import { readTerms } from "../../../src/judge/shop/shop-payment.ts";
import { shortNames } from "../../../src/methods/method-lists.ts";
import { paymentRequestSchema } from "../../../src/methods/payment-request-schema.ts";
import { explain } from "../../../src/observe/explain/explain-input.ts";
import { vitestOf, wayOf } from "../../../src/observe/studio/page/snippets.ts";
import { paymentAnswerSchema, paymentListSchema } from "../../../src/observe/timeline/payment-view.ts";
import { readOffer } from "../../../src/payer/read-offer.ts";
import { builtInNetworks } from "../../../src/protocol/networks.ts";
import { requestJson } from "../../../src/util/http-client.ts";
import { carefulBuyer, startBuyer } from "../../support/judge/wrong-buyers.ts";

/*
 * A payment method is its folder and a line in the table of each half: with the lines below, everything else knows a method, and
 * a scheme, that only tests have.
 */

vi.mock("../../../src/methods/table.ts", async (original) => {
  const { methods, ...rest } = await original<typeof import("../../../src/methods/table.ts")>();
  const { transferFrom } = await import("../../support/methods/transfer-from/transfer-from-method.ts");
  return { ...rest, methods: [transferFrom, ...methods] };
});
vi.mock("../../../src/methods/table-for-people.ts", async (original) => {
  const { halves } = await original<typeof import("../../../src/methods/table-for-people.ts")>();
  const people = await import("../../support/methods/transfer-from/transfer-from-people.ts");
  return { halves: [...halves, people.transferFromForPeople] };
});
vi.mock("../../../src/methods/on-chain/table.ts", async (original) => {
  const { settlings } = await original<typeof import("../../../src/methods/on-chain/table.ts")>();
  const chain = await import("../../support/methods/transfer-from/transfer-from-settling.ts");
  return { settlings: [...settlings, chain.transferFromSettling] };
});

const scheme = "test-pull";
// The compiler knows the tables without the lines above.
const terms: object = { scheme };

let harness: Awaited<ReturnType<typeof createHarness<"base">>>;
beforeAll(async () => {
  harness = await createHarness({ networks: ["base"], studio: true, journal: false });
}, 60_000);
afterAll(() => harness.close());

const ask = async (path: string) =>
  (
    await requestJson(new URL(path, harness.facilitator.url).href, {
      headers: { accept: "application/json" },
    })
  ).body;

test("it is offered: in /supported, in a shop's configuration, in forms and in OpenAPI's schema", async () => {
  expect(await ask("/v1/supported")).toMatchObject({
    kinds: expect.arrayContaining([expect.objectContaining({ scheme, x402Version: 2 })]),
  });
  expect(harness.shopConfig("base", "$0.01", terms).accepts).toMatchObject({
    scheme,
    network: "eip155:8453",
  });
  expect(shortNames).toContain(scheme);
  expect(await ask("/harness/methods")).toContainEqual(
    expect.objectContaining({ name: scheme, terms: { scheme }, label: `${scheme} · transferFrom` }),
  );
  const body = await harness.sign({ network: "base", ...terms });
  expect(paymentRequestSchema.safeParse(body).success).toBe(true);
});

test("it is signed and settled, and its payment is shown in the studio", async () => {
  const before = await harness.networks.base.balanceOf(harness.organization.recipient);
  const { settle } = await harness.pay({ network: "base", ...terms });
  expect(settle.body).toMatchObject({ success: true });
  expect((await harness.networks.base.balanceOf(harness.organization.recipient)) - before).toBe(10_000n);

  const { payments } = paymentListSchema.parse(await ask("/payments"));
  const { payment } = paymentAnswerSchema.parse(await ask(`/payments/${payments[0]?.id}`));
  expect(payment).toMatchObject({
    method: "test-transfer-from",
    way: { name: scheme, option: "transfer", transfer: "transfer-from" },
    settle: { outcome: "settled" },
    signedMembers: expect.arrayContaining([{ label: "value", value: "10000", kind: "amount" }]),
  });
  expect(wayOf(payment)).toBe(`${scheme} · transferFrom · x402 v2`);
  expect(vitestOf(payment)).toContain(`scheme: "${scheme}"`);
});

test("it is explained", async () => {
  const body = await harness.sign({ network: "base", ...terms });
  const { facilitatorContract } = harness.networks.base;
  const contracts = { mainnet: facilitatorContract.address, testnet: facilitatorContract.address };
  const found = (text: string) =>
    explain(text, { contracts, now: undefined }).findings.map(({ mistake, at }) => ({ mistake, at }));
  expect(found(JSON.stringify(body))).toEqual([]);
  const signature = `0x${"11".repeat(64)}1b`;
  const forged = { ...body, paymentPayload: { ...body.paymentPayload } };
  forged.paymentPayload.payload = { ...forged.paymentPayload.payload, signature };
  expect(found(JSON.stringify(forged))).toContainEqual({
    mistake: "signed-by-another-key",
    at: "paymentPayload.payload.signature",
  });
});

test("it is judged: a client that pays with it, by what moves on the chain", async () => {
  const where = { network: "base", knownNetworks: builtInNetworks } as const;
  await using scene = await openScene({ ...where, way: scheme, hasOtherNetwork: true });
  await using shops = await openShops();
  const cases = clientCases.filter(({ name }) =>
    ["plain", "asks-again", "used-authorization"].includes(name),
  );
  expect(cases).toHaveLength(3);
  const options = {
    ...{ ...where, cases, networks: [], ways: [], seed: 1, slowMs: 200, timeoutMs: 20_000 },
    versions: [2] as const,
    start: startBuyer(carefulBuyer, () => {}),
  };
  const findings = await runCases(
    cases.map((tested) => ({
      ...tested,
      suite: "base",
      run: () => runClientCase(tested, scene, shops, options),
    })),
    judgeClientFacts,
    { atOnce: 1 },
  );
  expect(findings.filter(({ level }) => level !== "good")).toEqual([]);

  const resource = "https://shop.example/report";
  const { headers, body } = challengeOf([scene.offer], [2], resource, "pay");
  const answer = { status: 402, headers: new Headers(headers), body: JSON.stringify(body) };
  expect(readTerms(answer, builtInNetworks)).toMatchObject([{ scheme, value: scene.offer.amount }]);
  const networks = [{ ...scene.network, asset: scene.network.usdc }];
  expect(readOffer(headers["PAYMENT-REQUIRED"], networks, "The shop")).toMatchObject({ scheme });
}, 120_000);
