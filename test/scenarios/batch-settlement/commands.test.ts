import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HTTPFacilitatorClient, x402ResourceServer } from "@x402/core/server";
import { BatchSettlementEvmScheme as ShopScheme } from "@x402/evm/batch-settlement/server";
import { FileChannelStorage } from "@x402/evm/batch-settlement/server/file-storage";
import { paymentMiddleware } from "@x402/express";
import express from "express";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { describeShop } from "../../../src/harness/api/buyer.ts";
import { harnessDescriptionSchema } from "../../../src/harness/control/description.ts";
import { channelId } from "../../../src/methods/batch-settlement/channel.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { testKeys } from "../../../src/payer/test-keys.ts";
import { requestJson } from "../../../src/util/http-client.ts";
import { type CliProcess, startCli } from "../../support/cli.ts";
import { type LoopbackServer, listenOnLoopback } from "../../support/loopback-server.ts";
import { goods } from "../../support/merchant.ts";
import { runHere } from "../../support/run-here.ts";

/* The commands `pay`, `buy` and `channels` with scheme “batch-settlement”, and the unmodified public shop. */

let up: CliProcess;
let description: ReturnType<typeof harnessDescriptionSchema.parse>;
let origin: string;
let shop: LoopbackServer;
let storage: string;
beforeAll(async () => {
  const flags = ["--no-demo", "--json", "--pay-to", "recipients", "--log-format", "json"];
  up = await startCli(["up", "--port", "0", "--networks", "base", ...flags]);
  const [line] = await up.printed(/^.+\n/);
  description = harnessDescriptionSchema.parse(JSON.parse(line));
  origin = description.facilitator.url.replace(/\/v1$/, "");
}, 60_000);
beforeEach(async () => {
  await run("reset");
  storage = await mkdtemp(join(tmpdir(), "x402-channels-"));
  const { facilitator, accepts } = describeShop(description, {
    ...{ network: "base", amount: "0.001", apiKey: description.organization.apiKey },
    options: { scheme: "batch-settlement" },
  });
  const scheme = new ShopScheme(accepts.payTo, { storage: new FileChannelStorage({ directory: storage }) });
  const client = new HTTPFacilitatorClient(facilitator);
  const server = new x402ResourceServer(client).register(accepts.network, scheme);
  const app = express();
  app.use(paymentMiddleware({ "GET /goods": { accepts } }, server));
  app.get("/goods", (_request, response) => void response.json(goods));
  shop = await listenOnLoopback(app);
  return async () => {
    await shop.close();
    await rm(storage, { recursive: true });
  };
});
afterAll(async () => up?.[Symbol.asyncDispose]());

/** Runs a command with `--json`. */
async function run(...args: string[]) {
  const { code, stdout, stderr } = await runHere([...args, "--url", origin, "--json"]);
  if (stdout === "") throw new Error(stderr);
  return { code, ...JSON.parse(stdout) };
}

const recipient = () => description.organization.recipient;
const buy = () => run("buy", `${shop.origin}/goods`);

test("pay settles a deposit with a voucher for the price, and says how much each was", async () => {
  const paid = await run("pay", "--scheme", "batch-settlement", "--amount", "0.002");
  expect(paid).toMatchObject({ code: 0, settled: true, amount: "2000" });
  expect(paid.settle.body).toMatchObject({ success: true, amount: "10000" });
  const text = ["pay", "--scheme", "batch-settlement", "--method", "permit2", "--url", origin];
  const { code, stdout } = await runHere(text);
  expect(code).toBe(0);
  expect(stdout).toMatch(/0\.01 USDC.*0\.05 USDC/);
});

test("pay to the facilitator contract is refused, and names a payTo that works", async () => {
  const scheme = ["pay", "--scheme", "batch-settlement", "--url", origin];
  const { facilitatorContract = "" } = description.networks.base ?? {};
  const { code, stderr } = await runHere([...scheme, "--pay-to", facilitatorContract]);
  const [, payTo = ""] = /payTo, such as (0x\w+)/.exec(stderr) ?? [];
  expect([code, (await runHere([...scheme, "--pay-to", payTo])).code]).toEqual([1, 0]);
});

test("a signed payment of POST /__payment is verified and settled", async () => {
  const { body } = await requestJson(`${origin}/__payment`, {
    method: "POST",
    body: { scheme: "batch-settlement", network: "base", amount: "0.001" },
  });
  const { body: request, settleBody } = body as Record<string, Record<string, unknown>>;
  const headers = { authorization: description.organization.apiKey };
  const post = (route: string, body: Record<string, unknown> = {}) =>
    requestJson(`${origin}/v1/${route}`, { method: "POST", headers, body });
  expect((await post("verify", request)).body).toMatchObject({ isValid: true });
  expect((await post("settle", settleBody)).body).toMatchObject({ success: true });
});

test("buyers who come again buy on the first deposit; then the shop claims, is paid, and refunds", async () => {
  for (const transaction of [/^0x/, /^$/, /^$/]) {
    const bought = await buy();
    expect(bought).toMatchObject({ code: 0, result: "bought", answer: { status: 200 } });
    expect(bought.answer.receipt.transaction).toMatch(transaction);
  }
  const claimed = await run("channels", "claim", storage);
  expect(claimed).toMatchObject({ code: 0, results: [{ network: "base", answer: { success: true } }] });
  const settle = ["channels", "settle", recipient(), "--network", "base"];
  expect(await run(...settle)).toMatchObject({ code: 0, results: [{ answer: { amount: "3000" } }] });
  expect(await run(...settle)).toMatchObject({
    ...{ code: 1, results: [{ answer: { errorReason: "invalid_batch_settlement_evm_nothing_to_settle" } }] },
  });

  await buy();
  const [{ channels }] = claimed.results;
  const refund = ["channels", "refund", channels[0], "--storage", storage];
  expect(await run(...refund)).toMatchObject({
    ...{ code: 0, results: [{ answer: { success: true, amount: "6000" } }] },
  });
  expect(await run(...settle)).toMatchObject({ code: 0, results: [{ answer: { amount: "1000" } }] });
  expect(await run(...refund)).toMatchObject({ code: 0, results: [] });
  const { asset, rpcUrl } = description.networks.base ?? { asset: { address: "" }, rpcUrl: "" };
  const data = `0x70a08231${recipient().slice(2).toLowerCase().padStart(64, "0")}`;
  const { body } = await requestJson(rpcUrl, {
    method: "POST",
    body: { jsonrpc: "2.0", id: 1, method: "eth_call", params: [{ to: asset.address, data }, "latest"] },
  });
  expect(BigInt((body as { result: string }).result)).toBe(4_000n);
});

test("buy deposits no more than --max", async () => {
  const bought = await run("buy", `${shop.origin}/goods`, "--max", "0.002");
  expect(bought).toMatchObject({ code: 0, result: "bought", answer: { receipt: { amount: "2000" } } });
});

test("a stranger's key can neither claim nor refund", async () => {
  await buy();
  const refused = await run("channels", "claim", storage, "--api-key", testKeys.rival.apiKey);
  expect(refused).toMatchObject({ code: 1, results: [{ answer: { success: false } }] });
});

test("a saved state does not name the shop among those who have signed", async () => {
  await buy();
  expect(await run("channels", "claim", storage)).toMatchObject({ code: 0 });
  const file = join(storage, "saved.state");
  const { code, stdout } = await runHere(["state", "save", file, "--url", origin, "--json"]);
  expect([code, JSON.parse(stdout)]).toMatchObject([0, { strangers: [] }]);
});

test("a storage without channels is named", async () => {
  const missing = await run("channels", "claim", storage);
  expect([missing.code, missing.error.code]).toEqual([4, "not-found"]);
});

test("a file that is no whole channel is named, and the others are claimed", async () => {
  await buy();
  const folder = join(storage, "server");
  const [name = ""] = await readdir(folder);
  const text = await readFile(join(folder, name), "utf8");
  const [half, other] = [join(folder, "half.json"), join(folder, "other.json")];
  await writeFile(half, text.slice(0, text.length / 2));
  await writeFile(other, JSON.stringify({ ...JSON.parse(text), channelId: `0x${"12".repeat(32)}` }));
  const claimed = await run("channels", "claim", storage);
  expect(claimed).toMatchObject({ code: 1, results: [{ answer: { success: true } }] });
  expect(claimed.skipped).toMatchObject([{ file: half }, { file: other }]);
});

test("no file keeps the others from being claimed, but a refund is not made beside one that may be newer", async () => {
  await buy();
  const folder = join(storage, "server");
  const [name = ""] = await readdir(folder);
  const { channelId } = JSON.parse(await readFile(join(folder, name), "utf8"));
  const long = join(folder, "long.json");
  await writeFile(long, " ".repeat(1_100_000));
  await mkdir(join(folder, "folder.json"));
  const claimed = await run("channels", "claim", storage);
  expect(claimed).toMatchObject({ code: 1, results: [{ result: "done" }] });
  expect(claimed.skipped).toMatchObject([{ file: join(folder, "folder.json") }, { file: long }]);
  const refund = ["channels", "refund", channelId, "--storage"];
  expect((await run(...refund, storage)).code).toBe(1);
  expect(await run(...refund, join(folder, name))).toMatchObject({ code: 0, results: [{ result: "done" }] });
});

test.each([
  ["undecided", 500, { success: true, transaction: `0x${"12".repeat(32)}` }],
  ["undecided", 200, { success: true, transaction: "" }],
  ["undecided", 503, { title: "The settlement is under way" }],
  ["refused", 200, { success: false, errorReason: "invalid_payload" }],
] as const)("a claim is %s by an answer with status %d and %j", async (result, status, body) => {
  await buy();
  const other = express().use((_request, response) => void response.status(status).json(body));
  const server = await listenOnLoopback(other);
  const { code, stdout } = await runHere(["channels", "claim", storage, "--url", server.origin, "--json"]);
  await server.close();
  expect([code, JSON.parse(stdout)]).toMatchObject([1, { results: [{ result }] }]);
});

test("claims that are made are told of, even if the facilitator does not answer the next one", async () => {
  await buy();
  const folder = join(storage, "server");
  const [name = ""] = await readdir(folder);
  const { channelConfig, ...stored } = JSON.parse(await readFile(join(folder, name), "utf8"));
  const other = { ...channelConfig, receiver: harnessAccounts.admin.address };
  const { chainId } = description.networks.base ?? { chainId: 0 };
  const copy = { ...stored, channelConfig: other, channelId: channelId(other, chainId) };
  await writeFile(join(folder, "zz-other.json"), JSON.stringify(copy));
  const transaction = `0x${"12".repeat(32)}`;
  let asked = 0;
  const half = express().post("/v1/settle", (request, response) => {
    if (asked++ === 0) response.json({ success: true, transaction });
    else request.socket.destroy();
  });
  const server = await listenOnLoopback(half);
  const { code, stdout } = await runHere(["channels", "claim", storage, "--url", server.origin, "--json"]);
  await server.close();
  const results = [{ result: "done", answer: { transaction } }, { result: "undecided" }];
  expect([code, JSON.parse(stdout)]).toMatchObject([1, { results }]);
});

test("an older copy of a channel is neither claimed nor refunded by", async () => {
  await buy();
  const folder = join(storage, "server");
  const [name = ""] = await readdir(folder);
  await writeFile(join(folder, "0-copy.json"), await readFile(join(folder, name)));
  await buy();
  const { channelId } = JSON.parse(await readFile(join(folder, name), "utf8"));
  const refund = ["channels", "refund", channelId, "--storage", storage];
  expect(await run(...refund)).toMatchObject({ code: 0, results: [{ answer: { amount: "8000" } }] });
});

test("a facilitator that does not say what is in a channel has refunded nothing", async () => {
  await buy();
  const [name = ""] = await readdir(join(storage, "server"));
  const file = join(storage, "server", name);
  const { channelId } = JSON.parse(await readFile(file, "utf8"));
  const other = express();
  other.post("/v1/verify", (_request, response) => void response.json({ isValid: true }));
  const server = await listenOnLoopback(other);
  const refund = ["channels", "refund", channelId, "--storage", file, "--url", server.origin, "--json"];
  const { code, stdout } = await runHere(refund);
  await server.close();
  expect([code, JSON.parse(stdout)]).toMatchObject([1, { error: {} }]);
});

test("a channel from which the shop is selling is not refunded", async () => {
  await buy();
  const folder = join(storage, "server");
  const [name = ""] = await readdir(folder);
  const file = join(folder, name);
  const stored = JSON.parse(await readFile(file, "utf8"));
  const pendingRequest = { pendingId: "1", signedMaxClaimable: "2000", expiresAt: Date.now() + 60_000 };
  await writeFile(file, JSON.stringify({ ...stored, pendingRequest }));
  const refund = ["channels", "refund", stored.channelId, "--storage", file];
  expect((await run(...refund)).error.message).toMatch(/serving/);
  await writeFile(file, JSON.stringify({ ...stored, pendingRequest: { ...pendingRequest, expiresAt: 1 } }));
  expect(await run(...refund)).toMatchObject({ code: 0, results: [{ answer: { amount: "9000" } }] });
});
