import { generatePrivateKey } from "viem/accounts";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { harnessDescriptionSchema } from "../../../src/harness/control/description.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { networks } from "../../../src/protocol/networks.ts";
import { decodeHeader, encodeHeader } from "../../../src/protocol/payment-headers.ts";
import { membersOf } from "../../../src/util/json.ts";
import { type CliProcess, startCli } from "../../support/cli.ts";
import { goods, startMerchant } from "../../support/merchant.ts";
import { runHere } from "../../support/run-here.ts";
import { type StubShop, startStubShop } from "../../support/stub-shop.ts";

/* `x402-kit buy`: what a buyer sees of a shop that sells, and of shops that go wrong. */

let up: CliProcess;
let origin: string;
let description: ReturnType<typeof harnessDescriptionSchema.parse>;
beforeAll(async () => {
  up = await startCli([
    "up",
    "--port",
    "0",
    "--networks",
    "base",
    "--no-demo",
    "--json",
    "--log-format",
    "json",
  ]);
  const [line] = await up.printed(/^.+\n/);
  description = harnessDescriptionSchema.parse(JSON.parse(line));
  origin = description.facilitator.url.replace(/\/v1$/, "");
});
afterAll(async () => up?.[Symbol.asyncDispose]());

async function buy(url: string, ...args: string[]) {
  const { code, stdout, stderr } = await runHere(["buy", url, "--url", origin, "--json", ...args], keys);
  if (stdout === "") throw new Error(stderr);
  const { findings, ...bought } = JSON.parse(stdout);
  return { code, ...bought, mistakes: findings.map(({ mistake }: { mistake: string }) => mistake), findings };
}

/** The key for live chains: of an account that has nothing there. */
const keys = { PAYER_PRIVATE_KEY: generatePrivateKey() };

const channelTerms = {
  ...{ name: "USD Coin", version: "2", withdrawDelay: 900 },
  receiverAuthorizer: testPayers.funded.address,
};

async function openMerchant() {
  const { caip2, payTo } = description.networks.base ?? { caip2: "eip155:8453", payTo: "0x" };
  const { url } = description.facilitator;
  const merchant = await startMerchant(
    { url, apiKey: description.organization.apiKey },
    { "/report": { network: caip2, payTo, price: "$0.01" } },
  );
  onTestFinished(merchant.close);
  return `${merchant.origin}/report`;
}

async function openStub(shop: StubShop) {
  const { url, close } = await startStubShop(shop);
  onTestFinished(close);
  return url;
}

/** The payment in a request; undefined without one. */
const paymentOf = ({ headers }: { headers: Record<string, unknown> }) => {
  const header = headers["payment-signature"];
  return typeof header === "string" ? membersOf(decodeHeader(header)) : undefined;
};

test("a purchase is shown step by step: the offer, what was signed, the answer, the receipt", async () => {
  const { code, result, offer, signed, answer, mistakes } = await buy(await openMerchant());
  expect([code, result, mistakes]).toEqual([0, "bought", []]);
  expect(offer).toMatchObject({ x402Version: 2, network: "eip155:8453", amount: "10000" });
  expect(signed).toMatchObject({
    payer: testPayers.funded.address,
    amount: "10000",
    header: { name: "PAYMENT-SIGNATURE" },
  });
  expect(answer).toMatchObject({ status: 200, body: JSON.stringify(goods), receipt: { success: true } });
});

test("check finds of a shop of the public packages that HEAD is free, and nothing else", async () => {
  const { code, stdout } = await runHere(["check", await openMerchant(), "--facilitator", origin, "--json"]);
  const { findings }: { findings: { name: string; level: string }[] } = JSON.parse(stdout);
  const of = (level: string) => findings.filter((one) => one.level === level).map(({ name }) => name);
  expect([code, of("wrong"), of("differs"), of("not_judged")]).toEqual([1, ["free-with-head"], [], []]);
  // Pages of other origins cannot buy there; what needs the facilitator and its chain could be judged.
  expect(of("not_run")).toEqual(["cors-exposed", "cors-preflight"]);
});

test("a payer without money gets nothing, and the facilitator's reason with it", async () => {
  const { code, result, mistakes, findings } = await buy(await openMerchant(), "--payer", "empty");
  expect([code, result]).toEqual([1, "refused"]);
  expect(mistakes).toContain("insufficient_funds");
  expect(mistakes).not.toContain("never-asked");
  const { command, more } = findings[mistakes.indexOf("insufficient_funds")];
  const { empty } = testPayers;
  expect(command.join(" ")).toContain(
    `fund --network base --to ${empty.address} --amount 0.01 --url ${origin}`,
  );
  expect((await fetch(more)).status).toBe(200);
});

test("--dry-run stops before anything is signed", async () => {
  const payments: unknown[] = [];
  const url = await openStub({ instead: (request) => void payments.push(paymentOf(request)) });
  const { code, result, signed } = await buy(url, "--dry-run");
  expect([code, result, signed, payments]).toEqual([0, "dry-run", undefined, [undefined]]);
});

test("a bare second 402 is compared with the payment, member by member", async () => {
  let isAgain = false;
  const url = await openStub({
    offer: {
      get maxTimeoutSeconds() {
        return isAgain ? 300 : 60;
      },
    },
    instead(request) {
      isAgain = paymentOf(request) !== undefined;
    },
  });
  const { code, result, findings, mistakes } = await buy(url);
  expect([code, result, mistakes]).toEqual([1, "refused", ["accepted-differs", "never-asked"]]);
  expect(findings[0]).toMatchObject({
    at: "maxTimeoutSeconds",
    got: "60",
    expected: "300",
    title: "maxTimeoutSeconds: you sent 60, the shop offers 300",
  });
});

const settled = {
  success: true,
  transaction: `0x${"12".repeat(32)}`,
  network: "eip155:8453",
  payer: testPayers.funded.address,
};

/** Serves any payment, with this receipt. */
const servesWith =
  (receipt: object | undefined): StubShop["instead"] =>
  (request, response) => {
    if (paymentOf(request) === undefined) return false;
    if (receipt !== undefined) response.setHeader("PAYMENT-RESPONSE", encodeHeader(receipt));
    return response.end("the goods");
  };

test.each([
  ["no receipt", undefined, ["bad-receipt"]],
  [
    "a receipt of a failure",
    { ...settled, success: false, errorReason: "insufficient_funds" },
    ["bad-receipt", "refused"],
  ],
  ["a receipt without a transaction", { ...settled, transaction: "" }, ["bad-receipt"]],
  ["a receipt of another payer", { ...settled, payer: testPayers.empty.address }, ["bad-receipt"]],
  ["a receipt of another network", { ...settled, network: "base" }, ["bad-receipt"]],
])("goods with %s are no success", async (_, receipt, expected) => {
  const bought = await buy(await openStub({ instead: servesWith(receipt) }));
  expect([bought.code, bought.result, bought.mistakes.sort()]).toEqual([1, "unclear", expected]);
});

test("where the answer is lost, the same payment can be sent again", async () => {
  const url = await openStub({
    instead: (request) => paymentOf(request) !== undefined && request.socket.destroy(),
  });
  const { code, stdout } = await runHere(["buy", url, "--url", origin]);
  expect(code).toBe(1);
  const [, header = ""] = /curl -H 'PAYMENT-SIGNATURE: (\S+)'/.exec(stdout) ?? [];
  expect(decodeHeader(header)).toMatchObject({ x402Version: 2, accepted: { amount: "10000" } });
});

test("method and body are those of both requests", async () => {
  const requests: unknown[] = [];
  const url = await openStub({
    async instead(request) {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      requests.push([request.method, request.headers["content-type"], `${Buffer.concat(chunks)}`]);
    },
  });
  await buy(url, "--method", "POST", "--body", '{"city":"Rome"}');
  expect(requests).toEqual(Array(2).fill(["POST", "application/json", '{"city":"Rome"}']));
});

test.each<[string, StubShop, string[], string]>([
  ["the network is not offered", {}, ["--network", "polygon"], "nothing-payable"],
  ["it costs more than --max", {}, ["--max", "0.001"], "too-dear"],
  ["it costs more than a tenth of a dollar, live", { offer: { amount: "100001" } }, ["--live"], "too-dear"],
  ["payTo is nobody's, live", { offer: { payTo: `0x${"0".repeat(40)}` } }, ["--live"], "not-safe"],
  [
    "a channel is needed, live",
    { offer: { scheme: "batch-settlement", extra: channelTerms } },
    ["--live"],
    "needs-channel",
  ],
  [
    "the token is not the network's USDC, live",
    { offer: { asset: networks.polygon.usdc.address } },
    ["--live"],
    "not-safe",
  ],
])("nothing is signed if %s", async (_, shop, args, expected) => {
  const payments: unknown[] = [];
  const url = await openStub({ ...shop, instead: (request) => void payments.push(paymentOf(request)) });
  const { code, result } = await buy(url, ...args);
  expect([code, result, payments]).toEqual([1, expected, [undefined]]);
});

test("a live payment is signed with the given key, for ten minutes at most", async () => {
  const payments: unknown[] = [];
  const url = await openStub({
    offer: { maxTimeoutSeconds: 3_600 },
    instead: (request) => void payments.push(paymentOf(request)?.payload),
  });
  const before = Math.floor(Date.now() / 1_000);
  const { signed, mistakes } = await buy(url, "--live");
  const { authorization } = membersOf(payments[1]);
  const { validBefore, from } = membersOf(authorization);
  expect(from).toBe(signed.payer);
  expect(Number(validBefore) - before).toBeGreaterThanOrEqual(600);
  expect(Number(validBefore) - before).toBeLessThan(660);
  // Nobody was asked about it here.
  expect(mistakes).toEqual([]);
});

test.each([
  ["without a key", {}],
  ["with a key that is published for tests", { PAYER_PRIVATE_KEY: testPayers.funded.privateKey }],
])("nothing is signed live %s", async (_, variables) => {
  const payments: unknown[] = [];
  const url = await openStub({ instead: (request) => void payments.push(paymentOf(request)) });
  const { code, stdout } = await runHere(["buy", url, "--live", "--json"], variables);
  expect(code).not.toBe(0);
  expect(stdout).not.toContain("PAYMENT-SIGNATURE");
  expect(payments.filter((payment) => payment !== undefined)).toEqual([]);
});

test("test payers do not pay at a shop on another machine", async () => {
  const url = (await openStub({})).replace("127.0.0.1", "0.0.0.0");
  const { code, stderr } = await runHere(["buy", url, "--url", origin]);
  expect(code).not.toBe(0);
  expect(stderr).toContain("test payers pay on local chains only");
});

test("a shop that asks for no payment, or is not there, is no success", async () => {
  const url = await openStub({ instead: (_, response) => response.end("free") });
  expect(await buy(url)).toMatchObject({
    code: 1,
    result: "not-asked",
    answer: { status: 200, body: "free" },
  });
  const gone = await startStubShop();
  await gone.close();
  expect((await runHere(["buy", gone.url, "--url", origin])).code).not.toBe(0);
});
