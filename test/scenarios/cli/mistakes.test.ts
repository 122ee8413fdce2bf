import { afterAll, beforeAll, expect, test } from "vitest";
import { createLineRenderer, type PaymentLine } from "../../../src/cli/kit/payment-line.ts";
import { startMockServer } from "../../../src/fixtures/mock-server/start-mock-server.ts";
import { harnessDescriptionSchema } from "../../../src/harness/control/description.ts";
import { permit2Address } from "../../../src/methods/permit2/permit.ts";
import { localContracts } from "../../../src/payer/local-chains.ts";
import { orderSchema } from "../../../src/payer/payment-order.ts";
import { signOrder } from "../../../src/payer/sign-order.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { networks } from "../../../src/protocol/networks.ts";
import { sendHttp } from "../../../src/util/http-client.ts";
import { type CliProcess, startCli } from "../../support/cli.ts";
import { type LoopbackServer, listenOnLoopback } from "../../support/loopback-server.ts";
import { buildRequest, type RequestRow, type WrongRequest } from "../../support/mistakes/build-request.ts";
import type { Door, Mistake } from "../../support/mistakes/mistake.ts";
import { requests } from "../../support/mistakes/requests.ts";
import { type SetupRow, setups } from "../../support/mistakes/setups.ts";
import { type ShopRow, shops } from "../../support/mistakes/shops.ts";
import { written } from "../../support/mistakes/written.ts";
import { runHere } from "../../support/run-here.ts";
import { answerAsShop, type StubShop } from "../../support/stub-shop.ts";

/*
 * The mistakes that people make with x402, each explained at every door where its author may meet it: the answer itself, the
 * line of `up`, `x402-kit why` as text and as JSON, `x402-kit explain`, the studio. Each door alone must name the cause and the
 * change.
 */

let shop: StubShop = {};
let shopServer: LoopbackServer;
let shopUrl: string;
let up: CliProcess;
let origin: string;
let description: ReturnType<typeof harnessDescriptionSchema.parse>;
beforeAll(async () => {
  shopServer = await listenOnLoopback(answerAsShop(() => shop));
  up = await startCli([
    ...["up", "--port", "0", "--networks", "base", "--no-demo", "--json", "--log-format", "json"],
    ...["--shop", shopServer.origin],
  ]);
  const [line] = await up.printed(/^.+\n/);
  description = harnessDescriptionSchema.parse(JSON.parse(line));
  origin = description.facilitator.url.replace(/\/v1$/, "");
  shopUrl = `${description.shop?.url}/report`;
});
afterAll(async () => {
  await up?.[Symbol.asyncDispose]();
  await shopServer?.close();
});

const printed = (): PaymentLine[] =>
  up
    .stdout()
    .trim()
    .split("\n")
    .slice(1)
    .map((line): PaymentLine => JSON.parse(line));

/** What a command prints, in this process. */
async function cli(...args: string[]): Promise<string> {
  const { stdout, stderr } = await runHere(args);
  return `${stdout}${stderr}`;
}

type Said = Partial<Record<Door, string>>;

const texts = (explanations: readonly Record<string, unknown>[]) =>
  explanations.map((one) => Object.values(one).join("\n")).join("\n");

/** What is said of a payment where it was seen. */
async function saidOf(line: PaymentLine): Promise<Said> {
  const studio = await sendHttp(`${origin}/payments/${line.id}`);
  return {
    up: createLineRenderer()(line),
    why: (await cli("why", line.id, "--url", origin)).split("What happened:")[0] ?? "",
    "why --json": texts(JSON.parse(await cli("why", line.id, "--url", origin, "--json")).explanations),
    studio: texts(JSON.parse(studio.text).payment.explanations),
  };
}

/** Sends a request, and gives what each door says of it. */
async function explained(request: WrongRequest, isOfBody = true): Promise<Said> {
  const before = printed().length;
  const { path, method, headers, body } = request;
  const { text: answer } = await sendHttp(`${origin}${path}`, { method, body, headers });
  await expect.poll(() => printed().length).toBe(before + 1);
  const line = printed().at(-1);
  if (line === undefined) throw new Error("up printed nothing");
  const { invalidMessage, detail } = JSON.parse(answer);
  return {
    answer: invalidMessage ?? detail,
    explain: await cli("explain", isOfBody ? body : answer, "--url", origin),
    ...(await saidOf(line)),
  };
}

function expectNamed(said: Said, { cause, change, never, answer, silent = [] }: Mistake) {
  for (const [door, text] of Object.entries(said) as [Door, string][]) {
    if (silent.includes(door)) continue;
    const words = door === "answer" && answer !== undefined ? answer : [...cause, ...change];
    for (const word of words) expect.soft(text, door).toMatch(word);
    if (never !== undefined) expect.soft(text, door).not.toMatch(never);
  }
}

test.each<[string, RequestRow]>(Object.entries({ ...requests, ...written }))(
  "a client that %s: every door names what to change",
  async (_, row) => {
    const request = await buildRequest(row, description);
    const isOfBody =
      row.key === undefined && row.path === undefined && row.method === undefined && row.type === undefined;
    expectNamed(await explained(request, isOfBody), row);
    if (row.challenge !== undefined) {
      const [, first = ""] = (await cli("explain", request.challenge)).split("\n\n1. ");
      expect.soft(first, "explain of the 402").toMatch(row.challenge);
    }
  },
);

const paying = (): readonly [Parameters<typeof signOrder>[1][number]] => {
  const { base } = description.networks;
  if (base === undefined) throw new Error("base does not run");
  return [
    {
      ...networks.base,
      facilitatorContract: localContracts.mainnet,
      payTo: base.payTo,
      asset: networks.base.usdc,
    },
  ];
};

/** A payment for what a good shop offers. */
async function paymentHeader() {
  const answer = await sendHttp(shopUrl);
  const challenge = answer.headers["payment-required"] ?? JSON.parse(answer.text);
  const now = BigInt(Math.floor(Date.now() / 1_000));
  return (await signOrder(orderSchema.parse({ challenge }), paying(), () => now)).header;
}

test("the mock says the same of what a client has wrong, in its answer and in `why`", async () => {
  await using mock = await startMockServer({ networks: ["base"] });
  const at = new URL(mock.url).origin;
  for (const [name, row] of Object.entries({ ...requests, ...written })) {
    const { path, method, headers, body } = await buildRequest(row, mock.description);
    const { text } = await sendHttp(`${at}${path}`, { method, headers, body });
    const { invalidMessage, detail } = JSON.parse(text);
    const said: Said = { answer: `${name}: ${invalidMessage ?? detail}` };
    // It keeps no requests that no route answers.
    if (row.path === undefined && row.method === undefined) {
      const { explanations } = JSON.parse(await cli("why", "--url", at, "--json"));
      said["why --json"] = `${name}: ${texts(explanations)}`;
    }
    expectNamed(said, row);
  }
});

test.each<[string, ShopRow]>(Object.entries(shops))("%s: every door names what to change", async (_, row) => {
  shop = row.shop ?? {};
  const before = printed().length;
  const header = row.pays?.(await paymentHeader());
  await sendHttp(shopUrl, header && { headers: { [header.name]: header.value } });
  await expect.poll(() => printed().length).toBeGreaterThanOrEqual(before + (header ? 2 : 1));
  const line = printed().at(-1);
  if (line === undefined) throw new Error("up printed nothing");
  const { doors = ["explain"] } = row;
  const commands = {
    explain: header
      ? ["explain", `${header.name}: ${header.value}`, "--shop", `${shopServer.origin}/report`]
      : ["explain", `${shopServer.origin}/report`],
    check: ["check", `${shopServer.origin}/report`],
    buy: ["buy", `${shopServer.origin}/report`, "--url", origin],
  };
  const said: Said = await saidOf(line);
  for (const door of doors) said[door] = await cli(...commands[door]);
  expectNamed(said, row);
});

test.each<[string, SetupRow]>(Object.entries(setups))(
  "%s: every door names what to change",
  async (_, row) => {
    shop = {};
    for (const command of row.commands(origin, shopUrl)) {
      const { stdout, stderr } = await runHere(command, row.variables);
      expectNamed({ [command[0] ?? ""]: `${stdout}${stderr}` }, row);
    }
  },
);

test("a page of another origin asks the facilitator: the answer and the terminal name --cors-origins", async () => {
  const headers = { origin: "https://shop.example", "access-control-request-method": "POST" };
  const answer = await sendHttp(`${origin}/v1/verify`, { method: "OPTIONS", headers });
  expect(answer.status).toBe(403);
  const advice = /--cors-origins https:\/\/shop\.example/;
  expect(JSON.parse(answer.text)).toMatchObject({ hints: [expect.stringMatching(advice)] });
  await expect.poll(() => up.stderr()).toMatch(advice);
});

const holdsNothing = [/holds 0 USDC \(0\); 0\.01 USDC \(10000\) is needed/];
const approve = new RegExp(`approve.*${testPayers.unapproved.address}|approve\\(${permit2Address}`);
const notApproved = [/Permit2 take 0 USDC \(0\); 0\.01 USDC \(10000\) is needed/, approve];

test.each<[string, object, readonly RegExp[]]>([
  ["exact, of a payer with nothing", { payer: "empty" }, holdsNothing],
  ["Permit2, of a payer with nothing", { payer: "empty", method: "permit2" }, holdsNothing],
  ["upto, of a payer with nothing", { payer: "empty", scheme: "upto", max: "0.01" }, holdsNothing],
  ["Permit2, of a payer who has not approved it", { payer: "unapproved", method: "permit2" }, notApproved],
  [
    "upto, of a payer who has not approved it",
    { payer: "unapproved", scheme: "upto", max: "0.01" },
    notApproved,
  ],
])("a payment by %s: every door has the amounts in the token", async (_, order, cause) => {
  const { text } = await sendHttp(`${origin}/__payment`, {
    method: "POST",
    body: JSON.stringify(order),
    headers: { "content-type": "application/json" },
  });
  const headers = { authorization: description.organization.apiKey, "content-type": "application/json" };
  const body = JSON.stringify(JSON.parse(text).body);
  const said = await explained({ path: "/v1/verify", method: "POST", headers, body });
  expectNamed(said, { cause, change: [], never: /cast send|of the asset;/ });
});
