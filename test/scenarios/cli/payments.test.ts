import { createServer } from "node:http";
import { HTTPFacilitatorClient } from "@x402/core/server";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { createLocalRpc } from "../../../src/chain/rpc/local-rpc.ts";
import type { PaymentLine } from "../../../src/cli/kit/payment-line.ts";
import { harnessDescriptionSchema } from "../../../src/harness/control/description.ts";
import { pay, type SignedBodies, signPayment } from "../../../src/harness/control/pay.ts";
import { authorizationOf } from "../../../src/methods/exact-eip3009/eip3009-method.ts";
import { encodeSubmission } from "../../../src/methods/exact-eip3009/on-chain/token-calls.ts";
import { paymentListSchema } from "../../../src/observe/timeline/payment-view.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { requestJson, sendHttp } from "../../../src/util/http-client.ts";
import { closeAtOnce, listenOnLoopback } from "../../../src/util/node-http.ts";
import { type CliProcess, startCli } from "../../support/cli.ts";
import { parseBody } from "../../support/example-payment.ts";
import { runHere } from "../../support/run-here.ts";

/*
 * Payments in the terminal: the lines of `up`, `x402-kit logs` and `x402-kit why`.
 */

let up: CliProcess;
let origin: string;
let description: ReturnType<typeof harnessDescriptionSchema.parse>;
beforeAll(async () => {
  up = await startCli([
    ...["up", "--port", "0", "--networks", "base", "--no-demo", "--json", "--log-format", "json"],
  ]);
  const [line] = await up.printed(/^.+\n/);
  description = harnessDescriptionSchema.parse(JSON.parse(line));
  origin = description.facilitator.url.replace(/\/v1$/, "");
});
afterAll(async () => up?.[Symbol.asyncDispose]());

const printed = (): PaymentLine[] =>
  up
    .stdout()
    .trim()
    .split("\n")
    .slice(1)
    .map((line): PaymentLine => JSON.parse(line));

const cli = (...args: string[]) => runHere([...args, "--url", origin]);

test("why says of an up that has seen no payment how to make one", async () => {
  expect((await cli("why")).stderr).toContain(
    `Have a client verify or settle one, or pay yourself: npx --no-install x402-kit pay --url ${origin}`,
  );
});

test("pay by batch-settlement names no payTo that this up would refuse", async () => {
  const { code, stderr } = await cli("pay", "--scheme", "batch-settlement");
  expect(code).toBe(1);
  expect(stderr).toContain("up --pay-to recipients");
  expect(stderr).not.toContain("another payTo");
});

test("up prints a line for every verify and settle, and says of a refusal what to do", async () => {
  await pay(description, { network: "base" });
  await pay(description, { network: "base", payer: "empty" });
  await expect.poll(() => printed().length).toBe(4);
  expect(printed()).toMatchObject([
    { operation: "verify", payerName: "funded", amount: "10000", outcome: "valid", fix: null, more: null },
    { operation: "settle", payerName: "funded", outcome: "settled", transaction: expect.any(String) },
    {
      operation: "verify",
      payerName: "empty",
      outcome: "invalid",
      reason: "insufficient_funds",
      more: `${origin}/errors#insufficient_funds`,
    },
    { operation: "settle", payerName: "empty", fix: expect.stringContaining("x402-kit fund") },
  ]);
});

test("explain tells of a payment that a running up has settled when and where it was, and why it is refused now", async () => {
  const { request: body } = await signPayment(description, { network: "base" });
  const settle = () =>
    requestJson(`${origin}/v1/settle`, {
      method: "POST",
      headers: { authorization: description.organization.apiKey },
      body,
    });
  await settle();
  await settle();
  const { stdout, stderr, code } = await cli("explain", JSON.stringify(body));
  expect({ stderr, code }).toEqual({ stderr: "", code: 1 });
  expect(stdout).toContain(`At ${origin}: settle invalid: invalid_transaction_state, transaction 0x`);
  expect(stdout).toMatch(/got: {6}settled at 20\S+Z in transaction 0x[0-9a-f]{64} for org_local/);
});

test.each([1, 2] as const)(
  "explain says of a body or header of version %i that was settled when, where, by whom and what to do",
  async (x402Version) => {
    const { request } = await signPayment(description, { network: "base", x402Version });
    const headers = { authorization: description.organization.apiKey };
    const { body } = await requestJson(`${origin}/v1/settle`, { method: "POST", headers, body: request });
    const header = Buffer.from(JSON.stringify(request.paymentPayload)).toString("base64");
    for (const given of [JSON.stringify(request), header]) {
      const { stdout, stderr, code } = await cli("explain", given);
      expect({ stderr, code }).toEqual({ stderr: "", code: 1 });
      const transaction = String(Reflect.get(Object(body), "transaction"));
      expect(stdout).toMatch(/^One thing is wrong in this (request|payment):/);
      expect(stdout).toContain("The authorization was used before (authorization.nonce)");
      expect(stdout).toMatch(
        new RegExp(`got: {6}settled at 20\\S+Z in transaction ${transaction} for org_local`),
      );
      expect(stdout).toContain("For another purchase, sign with a new nonce.");
      expect(stdout).toContain(`At ${origin}: settle settled, transaction ${transaction}.`);
    }
  },
);

test("explain says of a payment that was never sent, but used straight on the token, where and by whom", async () => {
  const { request } = await signPayment(description, { network: "base" });
  const { payment } = parseBody(request);
  const { rpcUrl = "", asset } = description.networks.base ?? {};
  const rpc = createLocalRpc(rpcUrl);
  const stranger = "0x00000000000000000000000000000000deadbeef";
  await rpc.request("anvil_setBalance", stranger, "0xde0b6b3a7640000");
  await rpc.request("anvil_impersonateAccount", stranger);
  const call = {
    from: stranger,
    to: asset?.address,
    data: encodeSubmission(authorizationOf(payment), payment.signature),
  };
  const sent = await rpc.request("eth_sendTransaction", call);
  await rpc.request("anvil_mine");
  for (const given of [request, request.paymentPayload]) {
    const { stdout, code } = await cli("explain", JSON.stringify(given));
    expect(code).toBe(1);
    expect(stdout).toMatch(
      new RegExp(`got: {6}used at 20\\S+Z in transaction ${sent} of block \\d+, sent by ${stranger}`),
    );
    expect(stdout).toContain("Do not ask the payer again before you know where the value went");
  }
});

test("explain says of a payment that was never sent so, and that its authorization is unused", async () => {
  const { request } = await signPayment(description, { network: "base" });
  const header = Buffer.from(JSON.stringify(request.paymentPayload)).toString("base64");
  const { stdout, code } = await cli("explain", header);
  expect(code).toBe(1);
  expect(stdout).toContain("One thing is wrong in this payment:\n\n1. The facilitator was never asked");
  expect(stdout).toMatch(
    new RegExp(
      `At ${origin}: no verify or settle of this payment was seen; its authorization is unused on base, where its payer holds [\\d,.]+ USDC\\.`,
    ),
  );
});

test.each([
  ["empty", "The payer holds 0 USDC (0)", "insufficient_funds"],
  ["blacklisted", "The payer is blacklisted by the asset's issuer", "invalid_transaction_state"],
] as const)(
  "explain finds what stands in the way of a payment by the payer %s, before it is sent",
  async (payer, told, reason) => {
    const { request } = await signPayment(description, { network: "base", payer });
    const { stdout, code } = await cli("explain", JSON.stringify(request));
    expect(code).toBe(1);
    expect(stdout).toContain(`1. ${told}`);
    expect(stdout).toContain(`${origin}/errors#${reason}`);
    expect(stdout).toContain("its authorization is unused on base");
    expect(stdout).not.toContain("not looked at");
    // What is only worth a look comes after it.
    const both = await cli("explain", JSON.stringify({ ...request, x402Version: 1 }));
    expect(both.stdout).toContain(`1. ${told}`);
    expect(both.stdout).toMatch(/^2\. .*x402Version/m);
  },
);

test("a fix is a command that works as it stands, and what it links to is served", async () => {
  const payer = generatePrivateKey();
  const payment = { network: "base", payer, amount: 20_000n } as const;
  await pay(description, payment);
  const { stdout } = await cli("why");
  const [, command = ""] = /fix: .*`npx --no-install x402-kit (fund [^`]*)`/.exec(stdout) ?? [];
  expect(command).toContain(
    `--network base --to ${privateKeyToAccount(payer).address} --amount 0.02 --url ${origin}`,
  );
  const funded = await runHere(command.split(" "));
  expect(funded).toMatchObject({ code: 0, stderr: "" });
  expect((await pay(description, payment)).settle.body).toMatchObject({
    success: true,
  });
  const [more = "", section = ""] = /http\S+\/errors#(\S+)/.exec(stdout) ?? [];
  const { status, text } = await sendHttp(more);
  expect(status).toBe(200);
  expect(text).toContain(` id="${section}"`);
});

/** How a shop settles: by HTTP as it likes, or by the public client. */
const settlers: Record<string, (body: SignedBodies["request"]) => Promise<unknown>> = {
  "plain HTTP": (body) =>
    requestJson(`${origin}/v1/settle`, {
      ...{ method: "POST", body },
      headers: { authorization: description.organization.apiKey },
    }),
  "the public client": async (body) => {
    const headers = { Authorization: description.organization.apiKey };
    const createAuthHeaders = async () => ({ verify: headers, settle: headers, supported: headers });
    const client = new HTTPFacilitatorClient({ url: description.facilitator.url, createAuthHeaders });
    const { paymentPayload, paymentRequirements } = JSON.parse(JSON.stringify(body));
    return client.settle(paymentPayload, paymentRequirements);
  },
};

test.each(
  Object.keys(settlers).flatMap((settler) => ([1, 2] as const).map((version) => ({ settler, version }))),
)(
  "two settles at once by $settler, version $version, are counted as two, and the one that paid is told first",
  async ({ settler, version: x402Version }) => {
    const { request: body } = await signPayment(description, { network: "base", x402Version });
    const before = printed().length;
    await Promise.all([settlers[settler]?.(body), settlers[settler]?.(body)]);
    await expect.poll(() => printed().length).toBe(before + 2);
    const { stdout } = await cli("why");
    expect(stdout).toMatch(
      /^settle {8}settled, then invalid: invalid_transaction_state \(200\), asked 2 times$/m,
    );
    expect(stdout).toMatch(/^asked {9}at \d\d:\d\d:\d\d \(\d+ s ago\)$/m);
    const { payments } = paymentListSchema.parse(JSON.parse((await sendHttp(`${origin}/payments`)).text));
    expect(payments[0]?.settle?.count).toBe(2);
  },
);

test("why says each sentence once, and of a contract wallet nothing about the payer's key", async () => {
  const { request } = await signPayment(description, { network: "base", payer: "gasBurner" });
  const headers = { authorization: description.organization.apiKey };
  await requestJson(`${origin}/v1/verify`, { method: "POST", headers, body: request });
  const { stdout } = await cli("why");
  const message = `The contract at ${testPayers.gasBurner.address} does not accept the signature (EIP-1271)`;
  const [told = ""] = stdout.split("What happened:");
  expect(told.split(message), stdout).toHaveLength(2);
  expect(stdout).toContain("Sign with the key of the wallet's owner");
  expect(stdout).not.toContain("authorization.from");
  await expect
    .poll(() => printed().at(-1))
    .toMatchObject({ message, fix: expect.stringContaining("the wallet's owner") });
});

test("explain says nothing of a URL where nothing answers, or something else does", async () => {
  const { request } = await signPayment(description, { network: "base" });
  const body = JSON.stringify(request);
  const header = Buffer.from(JSON.stringify(request.paymentPayload)).toString("base64");
  const challenge = JSON.stringify({ x402Version: 1, accepts: [] });
  for (const given of [body, header, challenge]) {
    const { stdout, stderr, code } = await runHere(["explain", given, "--url", "http://127.0.0.1:9"]);
    expect({ stdout, isError: code !== 0 }).toEqual({ stdout: "", isError: true });
    expect(stderr).toContain("No payments can be read at http://127.0.0.1:9: nothing answers there");
  }
  const { rpcUrl } = description.networks.base ?? { rpcUrl: "" };
  const node = await runHere(["explain", header, "--url", rpcUrl.replace(/\/$/, "")]);
  expect(node.stderr).toMatch(/payments\S+ answers/);
});

test("a wrong key, a wrong path and a body that is no payment have a line too", async () => {
  const before = printed().length;
  const post = (path: string, headers: Record<string, string>) =>
    requestJson(`${origin}${path}`, { method: "POST", headers, body: { paymentPayload: 7 } });
  const key = { authorization: description.organization.apiKey };
  await post("/v1/verify", { authorization: "x4k_wrong" });
  await post("/v2/verify", key);
  await post("/v1/settle", key);
  const { settleRequest: body } = await signPayment(description, { network: "base" });
  const headers = { ...key, "idempotency-key": "with a space" };
  await requestJson(`${origin}/v1/settle`, { method: "POST", headers, body });
  await expect.poll(() => printed().length).toBe(before + 4);
  expect(printed().slice(before)).toMatchObject([
    {
      ...{ operation: "verify", status: 401, fix: expect.stringContaining("x402-kit up") },
      more: `${origin}/errors#unauthorized`,
    },
    { operation: null, status: 404, outcome: "POST /v2/verify", fix: expect.stringContaining("ends in /v1") },
    { operation: "settle", status: 200, reason: "invalid_payload", payer: null },
    { operation: "settle", status: 400, fix: expect.stringContaining("what the message names") },
  ]);
});

test("a request with one malformed member is told with what else it names", async () => {
  const post = (body: object) =>
    requestJson(`${origin}/v1/verify`, {
      method: "POST",
      headers: { authorization: description.organization.apiKey },
      body,
    });
  for (const x402Version of [1, 2] as const) {
    const before = printed().length;
    const { request } = await signPayment(description, { network: "base", x402Version });
    const text = JSON.stringify(request);
    const numbers = text.replace(/"(value|validBefore)":"(\d+)"/g, '"$1":$2');
    expect(numbers).not.toBe(text);
    await post(JSON.parse(numbers));
    await expect.poll(() => printed().length).toBe(before + 1);
    const named = { network: "base", payerName: "funded", amount: "10000" };
    expect(printed().at(-1)).toMatchObject({ ...named, reason: "invalid_payload" });
    const { stdout } = await cli("why");
    expect(stdout).toContain(`0.01 USDC on base from funded (${testPayers.funded.address})`);
    expect(stdout).toContain("authorization.validBefore");
  }
});

test.each([1, 2] as const)(
  "what a shop of version %i asks for wrongly is explained, shown and copied as it came",
  async (x402Version) => {
    const { request } = await signPayment(description, { network: "base", x402Version });
    const text = JSON.stringify(request)
      .replaceAll('"version":"2"', '"version":"1"')
      .replace(/"signature":"0x..../, '"signature":"0x1111')
      .replaceAll('"maxTimeoutSeconds":60', '"maxTimeoutSeconds":77');
    const before = printed().length;
    await requestJson(`${origin}/v1/verify`, {
      method: "POST",
      headers: { authorization: description.organization.apiKey },
      body: JSON.parse(text),
    });
    await expect.poll(() => printed().length).toBe(before + 1);
    const { id, fix } = printed().at(-1) ?? { id: "" };
    expect(fix).toContain("Put the token's own name and version into `extra`");
    expect((await cli("why")).stdout).toContain('expected: {"name":"USD Coin","version":"2"}');
    const shown = JSON.stringify(await requestJson(`${origin}/payments/${id}`, {}));
    expect(shown).toContain('"maxTimeoutSeconds":77');
    expect(shown).not.toContain('"signature":"0x1111');
    const curl = await requestJson(`${origin}/payments/${id}/curl`, {
      ...{ method: "POST", body: { operation: "verify" } },
    });
    expect(JSON.stringify(curl.body)).toContain(JSON.stringify(text).slice(1, -1));
  },
);

test("a body with values that are no texts is refused and explained, and up goes on", async () => {
  const hostile: readonly unknown[] = [
    { toString: "x" },
    [{ toString: "x" }],
    { toString: null, valueOf: null },
  ];
  const [v1, v2] = await Promise.all(
    ([1, 2] as const).map((x402Version) => signPayment(description, { network: "base", x402Version })),
  );
  const bodies = [v1, v2].flatMap((signed) =>
    hostile.map((value) =>
      JSON.parse(JSON.stringify(signed?.request, (name, old) => (name === "asset" ? value : old))),
    ),
  );
  const before = printed().length;
  for (const [index, body] of bodies.entries()) {
    const operation = index % 2 === 0 ? "verify" : "settle";
    const headers = { authorization: description.organization.apiKey };
    const answer = await requestJson(`${origin}/v1/${operation}`, { method: "POST", headers, body });
    expect(answer).toMatchObject({ status: 200 });
  }
  await expect.poll(() => printed().length).toBe(before + bodies.length);
  for (const { id, fix } of printed().slice(before)) {
    expect(fix).not.toBeNull();
    const shown = await requestJson(`${origin}/payments/${id}`, {});
    expect(shown).toMatchObject({
      status: 200,
      body: { payment: { explanations: expect.arrayContaining([expect.anything()]) } },
    });
  }
  expect(up.stderr()).toBe("");
});

test("why explains the payment that was asked for last, or the one with an id or a transaction", async () => {
  const { settle } = await pay(description, { network: "base" });
  const transaction = String(Reflect.get(Object(settle.body), "transaction"));
  const settled = await cli("why", transaction);
  expect(settled.stdout).toContain("Nothing is wrong with it: it is settled.");
  expect(settled.stdout).toContain("0.01 USDC on base from funded");
  expect(settled.stdout).toMatch(/\+\d+ ms {3}request +POST \/v1\/settle/);

  const { request } = await signPayment(description, { network: "base", validForSeconds: -60 });
  const headers = { authorization: description.organization.apiKey };
  await requestJson(`${origin}/v1/verify`, { method: "POST", headers, body: request });
  const refused = await cli("why");
  // To tell why has succeeded: a script with `set -e` goes on.
  expect(refused.code).toBe(0);
  expect(refused.stdout).toContain("The authorization has expired (authorization.validBefore)");
  expect(refused.stdout).toContain("fix:      Sign again");
  expect(refused.stdout).toContain(`more:     ${origin}/errors#expired`);
  // An earlier payment that is sent again is the last one that was asked for.
  const first = await signPayment(description, { network: "base" });
  const sendFirst = () =>
    requestJson(`${origin}/v1/settle`, { method: "POST", headers, body: first.request });
  await sendFirst();
  await requestJson(`${origin}/v1/verify`, { method: "POST", headers, body: request });
  expect((await cli("why")).stdout).toContain("The authorization has expired");
  await sendFirst();
  expect((await cli("why")).stdout).toContain("invalid_transaction_state");
  const unknown = await cli("why", "0x12");
  expect(unknown).toMatchObject({ code: 4, stderr: expect.stringContaining("x402-kit logs") });
  expect((await runHere(["why", "--help"])).stdout).toContain("Exit code: 0 if the payment was found");
});

test("why says first that no payment came in the last minute, and fails", async () => {
  await pay(description, { network: "base" });
  // The same answers, two minutes later.
  const server = createServer(async ({ url = "" }, response) => {
    const { text } = await sendHttp(`${origin}${url}`);
    const earlier = (_: string, name: string, at: string) => `"${name}":${Number(at) - 120_000}`;
    response.end(text.replace(/"(at|firstSeenAt|lastSeenAt)":(\d+)/g, earlier));
  });
  const port = await listenOnLoopback(server);
  onTestFinished(() => closeAtOnce(server));
  const url = `http://127.0.0.1:${port}`;
  const end = await runHere(["why", "--url", url]);
  expect(end.code).toBe(1);
  expect(end.stdout).toMatch(/^No payment since \d\d:\d\d:\d\d \(2 min( \d+ s)? ago\)\./);
  const asJson = await runHere(["why", "--json", "--url", url]);
  expect([asJson.code, JSON.parse(asJson.stdout)]).toMatchObject([1, { stale: true }]);
  expect(JSON.parse((await cli("why", "--json")).stdout)).toMatchObject({ stale: false });
});

test("what browsers and crawlers request by themselves is neither a payment nor a refusal", async () => {
  await pay(description, { network: "base" });
  const ids = async () => {
    const { payments } = paymentListSchema.parse(JSON.parse((await sendHttp(`${origin}/payments`)).text));
    return payments.map(({ id }) => id);
  };
  const before = await ids();
  const stray = [
    ["GET", "/robots.txt"],
    ["GET", "/.well-known/appspecific/com.chrome.devtools.json"],
    ["OPTIONS", "/v2/verify"],
  ];
  for (const [method = "", path] of stray) await fetch(`${origin}${path}`, { method });
  expect(await ids()).toEqual(before);
  expect((await cli("why")).stdout).toContain("Nothing is wrong with it: it is settled.");
});

test("why asks the service for a transaction, which knows those too that were replaced by another one", async () => {
  const { settle } = await pay(description, { network: "base" });
  const transaction = String(Reflect.get(Object(settle.body), "transaction"));
  // One whose list has another transaction of the payment by now.
  const server = createServer(async ({ url = "" }, response) => {
    const { body } = await requestJson(`${origin}${url}`);
    response.end(JSON.stringify(url.startsWith("/payments?") ? { ...Object(body), payments: [] } : body));
  });
  const port = await listenOnLoopback(server);
  onTestFinished(() => closeAtOnce(server));
  const { stdout } = await runHere(["why", transaction, "--url", `http://127.0.0.1:${port}`]);
  expect(stdout).toContain(`transaction   ${transaction}`);
});

test("why says of a settled payment whose answer was lost what to do", async () => {
  await cli("fault", "facilitator", "answer-lost", "--method", "settle", "--times", "1");
  await expect(pay(description, { network: "base" })).rejects.toThrow("No answer from");
  const why = async () => (await cli("why")).stdout;
  await expect.poll(why).toContain("The answer did not reach its caller");
  expect(await why()).toMatch(/got: {6}the ledger says: settled\n.*\n +fix: {6}Send the same payment again/);

  // The caller gives up while the payment is under way.
  const { request } = await signPayment(description, { network: "base" });
  const held = await cli("fault", "base", "hold-blocks");
  expect(held.code).toBe(0);
  onTestFinished(async () => void (await cli("fault", "clear")));
  const leaving = new AbortController();
  const { signal } = leaving;
  const headers = { authorization: description.organization.apiKey, "content-type": "application/json" };
  const left = fetch(`${origin}/v1/settle`, {
    method: "POST",
    headers,
    body: JSON.stringify(request),
    signal,
  });
  left.catch(() => {});
  const rpc = createLocalRpc(description.networks.base?.rpcUrl ?? "");
  await expect.poll(() => rpc.request("txpool_status")).toMatchObject({ pending: "0x1" });
  leaving.abort(new Error("the caller gave up"));
  await expect(left).rejects.toThrow("the caller gave up");
  await expect
    .poll(() => printed().at(-1))
    .toMatchObject({
      ...{ operation: "settle", outcome: "abandoned", more: `${origin}/errors#answer-lost` },
      fix: expect.stringContaining("Send the same payment again"),
    });
  expect(await why()).toMatch(/settle +abandoned\n(.*\n)+The answer did not reach its caller/);
  await cli("fault", "clear");
  await expect.poll(why).toContain("the ledger says: settled");
});

test("logs lists what was, and follows what comes", async () => {
  const before = await cli("logs", "--json", "--limit", "100");
  const lines = before.stdout.trim().split("\n");
  expect(lines.length).toBeGreaterThan(3);
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({ operation: "verify", payerName: "funded" });
  await using following = await startCli(["logs", "--follow", "--limit", "1", "--url", origin]);
  await following.printed(/settle +base/);
  await pay(description, { network: "base", payer: "blacklisted" });
  await following.printed(/settle +base +blacklisted +0.01 USDC +invalid: invalid_transaction_state/);
  await following.printed(/^ +why: .*\n(?: +fix: .*\n)? +more: http\S+\/errors#invalid_transaction_state$/m);
  following.kill("SIGINT");
  await following.ended;
});

test("a settled payment that is settled again stays settled in lists and logs", async () => {
  const { request } = await signPayment(description, { network: "base" });
  const send = (operation: string) =>
    requestJson(`${origin}/v1/${operation}`, {
      method: "POST",
      headers: { authorization: description.organization.apiKey },
      body: request,
    });
  await send("settle");
  await send("settle");
  const listed = await requestJson(`${origin}/payments?limit=1`, {});
  expect(listed.body).toMatchObject({
    payments: [{ settle: { outcome: "invalid", count: 2 }, settledAt: expect.any(Number) }],
  });
  const logged = (await cli("logs", "--limit", "1", "--json")).stdout.trim().split("\n");
  const told = logged.map((line): PaymentLine => JSON.parse(line));
  expect(told).toMatchObject([
    { operation: "settle", outcome: "settled", transaction: expect.stringMatching(/^0x/), fix: null },
    { operation: "settle", outcome: "invalid", transaction: null },
  ]);
});

test("logs tells each answer with its own time, in order, though the ledger still looks at the payment", async () => {
  const { settle } = await pay(description, { network: "base", payer: "fickle" });
  expect(settle.body).toMatchObject({ success: false });
  await pay(description, { network: "base" });
  const linesNow = async () =>
    (await cli("logs", "--json", "--limit", "2")).stdout
      .trim()
      .split("\n")
      .map((line): PaymentLine => JSON.parse(line));
  const lines = await linesNow();
  expect(lines.map(({ operation, payerName }) => `${operation} ${payerName}`)).toEqual([
    ...["verify fickle", "settle fickle", "verify funded", "settle funded"],
  ]);
  const times = lines.map(({ time }) => Date.parse(time));
  expect(times).toEqual(times.toSorted((a, b) => a - b));
  expect(times[0]).toBeLessThan(times[1] ?? 0);
});

test("a quiet up prints no line for a payment", async () => {
  await using quiet = await startCli([
    ...["up", "--port", "0", "--networks", "base", "--no-demo", "--json", "--log-format", "json", "--quiet"],
  ]);
  const [line] = await quiet.printed(/^.+\n/);
  const { settle } = await pay(harnessDescriptionSchema.parse(JSON.parse(line)), { network: "base" });
  expect(settle.status).toBe(200);
  quiet.kill("SIGINT");
  await quiet.ended;
  expect(quiet.stdout().trim().split("\n")).toHaveLength(1);
});

test("without a running up, the commands say how to start one", async () => {
  const nowhere = await runHere(["why", "--url", "http://127.0.0.1:9"]);
  expect(nowhere.stderr).toContain("No payments can be read at http://127.0.0.1:9");
});

test("explain goes by the time of the chain at --url, or the one that is given, and names the clock", async () => {
  const { request, payment } = await signPayment(description, { network: "base" });
  const { validBefore } = authorizationOf(payment);
  const expired = "The authorization has expired";
  const body = JSON.stringify(request);
  expect((await cli("explain", body)).stdout).not.toContain(expired);
  await cli("advance-time", "--network", "base", "--seconds", "3600");
  const there = await cli("explain", body);
  expect(there.stdout).toContain(expired);
  expect(there.stdout).toMatch(new RegExp(` ago\\) by the clock at ${origin}$`, "m"));
  expect((await runHere(["explain", body])).stdout).not.toContain(expired);
  const then = new Date(Number(validBefore) * 1_000 + 5_000).toISOString();
  expect((await runHere(["explain", body, "--at", then])).stdout).toMatch(
    new RegExp(`got: +${validBefore} \\(\\S+ \\S+ UTC, 5 s ago\\)`),
  );
});

test("a payment that is valid on a chain whose time was moved is not explained by this machine's clock", async () => {
  await cli("advance-time", "--network", "base", "--seconds", "3600");
  // Past on the chain, and to come on this machine.
  const validAfter = BigInt(Math.floor(Date.now() / 1_000) + 1_800);
  const { request } = await signPayment(description, {
    network: "base",
    authorization: { validAfter, value: 9_999n },
  });
  const here = await runHere(["explain", JSON.stringify(request)]);
  expect(here.stdout).toMatch(/, in [^,]*\) by this machine's clock$/m);
  await requestJson(`${origin}/v1/verify`, {
    method: "POST",
    headers: { authorization: description.organization.apiKey },
    body: request,
  });
  const { stdout } = await cli("why");
  expect(stdout).toContain("The signed value is not the required amount");
  expect(stdout).not.toContain("not valid yet");
  const told = () => printed().findLast(({ reason }) => reason?.endsWith("authorization_value_mismatch"));
  await expect.poll(() => told()?.more).toBe(`${origin}/errors#amount-differs`);
});

test("why of a payment that expired since the chain's time was moved says first how to put that back", async () => {
  const validBefore = BigInt(Math.floor(Date.now() / 1_000) + 600);
  const { request: body } = await signPayment(description, {
    network: "base",
    authorization: { validBefore },
  });
  const headers = { authorization: description.organization.apiKey };
  await requestJson(`${origin}/v1/verify`, { method: "POST", headers, body });
  const { stdout } = await cli("why");
  const clock = String.raw`The local chain's clock is \d+ s ahead of this machine's`;
  const reset = String.raw`\`npx --no-install x402-kit reset --url ${origin}\` puts it back, with all else there\.`;
  expect(stdout).toMatch(new RegExp(`^ +fix: +${clock}: ${reset} Sign again with a later validBefore`, "m"));
  expect(stdout).not.toMatch(/^Answered: .*Sign again/m);
  await expect.poll(() => printed().at(-1)?.fix).toMatch(new RegExp(`^${clock}: ${reset}`));
});
