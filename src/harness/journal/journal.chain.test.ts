import { afterAll, beforeAll, expect, test } from "vitest";
import type { Body } from "../../../test/support/service.ts";
import { strangerAddress } from "../../fixtures/cases/payment-spec.ts";
import { encodeSubmission } from "../../methods/exact-eip3009/on-chain/token-calls.ts";
import type { Harness } from "../api/harness-api.ts";
import { connectHarness, createHarness } from "../index.ts";
import { describePayment } from "./journal-reader.ts";

let harness: Harness<"base">;

beforeAll(async () => {
  harness = await createHarness({ networks: ["base"] });
});

afterAll(() => harness?.close());

test("a payment's journal has its requests, checks, JSON-RPC calls and transaction", async () => {
  const { settlementId, settle, receipt } = await harness.pay({ network: "base", amount: 10_000n });
  const journal = await harness.journal.payment(settlementId);

  expect(journal).toMatchObject({ id: settlementId, network: "base", value: "10000" });
  expect(journal.requests).toMatchObject([
    { operation: "verify", status: 200, outcome: "valid" },
    { operation: "settle", status: 200, outcome: "settled", transaction: receipt?.transactionHash },
  ]);
  const [verify] = journal.requests;
  expect(verify?.checks.map(({ check }) => check)).toEqual([
    "networkIsEnabled",
    "assetIsAllowed",
    "payToIsAccepted",
    "isSignedForUs",
    "recipientIsPayTo",
    "valueIsExact",
    "assetIsSigned",
    "valueIsPositive",
    "minimumIsReached",
    "signatureHolds",
    "authorizationIsFree",
    "windowIsOpen",
    "simulationSucceeds",
    "payerIsAccepted",
  ]);
  expect(verify?.checks.every(({ passed }) => passed)).toBe(true);

  const methods = journal.rpcCalls.map(({ method }) => method);
  expect(methods.filter((method) => method === "eth_call")).toHaveLength(2);
  expect(methods.some((method) => method.startsWith("eth_sendRawTransaction"))).toBe(true);
  expect(methods).toContain("eth_getTransactionReceipt");

  expect(journal.transactions).toMatchObject([
    {
      hash: receipt?.transactionHash,
      payments: 1,
      mined: { blockNumber: `${receipt?.blockNumber}`, succeeded: true },
    },
  ]);
  expect(settle.body).toMatchObject({ success: true });
});

test("one that is refused says by which check, and why", async () => {
  const { settlementId } = await harness.pay({ network: "base", payer: "empty" });
  const { requests, transactions } = await harness.journal.payment(settlementId);
  expect(requests).toMatchObject([
    {
      outcome: "invalid",
      reason: "insufficient_funds",
      message: expect.stringContaining("The payer holds 0"),
    },
    { outcome: "invalid", reason: "insufficient_funds" },
  ]);
  expect(requests[0]?.checks.at(-1)).toMatchObject({ check: "simulationSucceeds", passed: false });
  expect(transactions).toEqual([]);
});

test("what a wallet was asked about the signature is in it", async () => {
  const { settlementId } = await harness.pay({ network: "base", payer: "gasBurner" });
  const { rpcCalls, requests } = await harness.journal.payment(settlementId);
  expect(rpcCalls.map(({ method }) => method)).toContain("eth_call");
  expect(requests[0]?.checks.at(-1)).toMatchObject({ check: "signatureHolds", passed: false });
});

test("as text it names the faults that hit the payment, and reads from top to bottom", async () => {
  await harness.faults.on("base", { method: "eth_sendRawTransaction*", nth: 1 }).answerLost();
  const { settlementId } = await harness.pay({ network: "base", amount: 7n });
  const text = await harness.journal.describe(settlementId);
  const told = text
    .replaceAll(/0x[0-9a-fA-F]{40,}/g, "0x…")
    .replaceAll(/[\d.]+ ms/g, "# ms")
    .replaceAll(/ +\+# ms/g, "")
    .replaceAll(/(txNonce|block) \d+/g, "$1 #");
  const lines = told.split("\n").map((line) => line.trim());
  expect(lines.slice(0, 4)).toEqual([
    "payment 0x…",
    "of 0.000007 USDC (7 units of 0x…) by 0x… on base",
    "POST /v1/verify",
    expect.stringMatching(/^(eth_getBlockByNumber, )?eth_call \(# ms\)$/),
  ]);
  expect(lines).toContain("POST /v1/verify → 200 valid in # ms; 14 checks passed");
  expect(told).toMatch(/eth_sendRawTransaction\w* \[fault: answer-lost\] \(# ms\)/);
  expect(lines).toContain("transaction 0x… sent, txNonce #");
  expect(lines).toContain("transaction 0x… mined in block #: succeeded");
  expect(lines.at(-1)).toBe("POST /v1/settle → 200 settled 0x… in # ms; 14 checks passed");
});

test("a payment is found by its transaction too", async () => {
  const { settlementId, receipt } = await harness.pay({ network: "base" });
  const hash = receipt?.transactionHash ?? "0x";
  expect(await harness.journal.payment(hash)).toMatchObject({ id: settlementId, open: [] });
  expect(await harness.journal.describe(hash)).toBe(await harness.journal.describe(settlementId));
});

test("an authorization that another sender used straight on the token is told with when, where and by whom", async () => {
  const request: Body = await harness.sign({ network: "base" });
  const { authorization, signature } = request.paymentPayload.payload;
  const { client, asset } = harness.networks.base;
  await client.impersonateAccount({ address: strangerAddress });
  await client.setBalance({ address: strangerAddress, value: 10n ** 18n });
  const hash = await client.sendTransaction({
    account: strangerAddress,
    to: asset.address,
    gas: 300_000n,
    data: encodeSubmission(authorization, signature),
  });
  await client.mine({ blocks: 1 });
  expect((await client.waitForTransactionReceipt({ hash })).status).toBe("success");
  await harness.verify(request);
  const settlementId = (await harness.journal.payments()).at(-1) ?? "0x";

  const { explanations } = await harness.journal.payment(settlementId);
  expect(explanations).toMatchObject([
    {
      mistake: "invalid_transaction_state",
      title: "The authorization was used before",
      got: expect.stringMatching(
        new RegExp(
          `^used at 20\\S+Z in transaction ${hash} of block \\d+, sent by ${strangerAddress} to the contract ${asset.address}, which moved 0.01 USDC to 0x`,
          "i",
        ),
      ),
    },
  ]);
  const text = await harness.journal.describe(settlementId);
  expect(text).toContain(
    "\n  why: The authorization was used before (authorization.nonce)\n    got:      used at 20",
  );
  expect(text).toContain("\n    fix:      Do not ask the payer again before you know where the value went");
});

test("requests without a key, a route or a payment are told too, to another process as well", async () => {
  await using shop = await createHarness({ networks: ["base"] });
  const key = { authorization: shop.organization.apiKey };
  const post = (path: string, headers: Record<string, string>, body: string) =>
    fetch(`${shop.facilitator.url.replace(/\/v1$/, "")}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body,
    });
  await post("/v1/verify", {}, "{}");
  await post("/v2/verify", key, "{}");
  await post("/v1/settle", key, "{");
  await post("/v1/verify", key, '{"paymentPayload":7}');
  const told = [
    { asked: "POST /v1/verify", status: 401, reason: "unauthorized" },
    { asked: "POST /v2/verify", status: 404 },
    { asked: "POST /v1/settle", status: 400, reason: "malformed-request", received: "{" },
    { asked: "POST /v1/verify", status: 200, reason: "invalid_payload", received: '{"paymentPayload":7}' },
  ];
  await expect.poll(() => shop.journal.otherRequests()).toMatchObject(told);
  const elsewhere = await connectHarness(shop.facilitator.url, ["base"]);
  expect(await elsewhere.journal.otherRequests()).toMatchObject(told);
  const text = await shop.journal.describe();
  expect(text).toContain("requests without a payment that could be read");
  expect(text).toContain("POST /v1/verify → 401 unauthorized: There is no Authorization header");
  expect(text).toContain('\n    received: {"paymentPayload":7}');
});

test("another process reads the same, and a reset forgets it", async () => {
  const { settlementId } = await harness.pay({ network: "base" });
  const elsewhere = await connectHarness(harness.facilitator.url, ["base"]);
  const journal = await elsewhere.journal.payment(settlementId);
  expect(describePayment(journal)).toBe(await harness.journal.describe(settlementId));
  expect(await elsewhere.journal.payments()).toContain(settlementId);
  const [newest] = await elsewhere.payments();
  expect(newest).toMatchObject({
    id: settlementId,
    network: "base",
    payerName: "funded",
    amount: "10000",
    token: { symbol: "USDC", decimals: 6 },
    verify: { outcome: "valid", count: 1 },
    settle: { outcome: "settled", status: 200 },
  });
  expect(await harness.payments()).toEqual(await elsewhere.payments());

  await harness.reset();
  expect(await harness.journal.payments()).toEqual([]);
  await expect(elsewhere.journal.payment(settlementId)).rejects.toThrow(/knows no payment 0x/);
});

test("a harness without a journal says how to get one", async () => {
  await using quick = await createHarness({ networks: ["base"], journal: false });
  const { settlementId } = await quick.pay({ network: "base" });
  await expect(quick.payments()).rejects.toThrow("This harness keeps no journal");
  await expect(quick.journal.payment(settlementId)).rejects.toMatchObject({
    message: "This harness keeps no journal",
    hints: ["Start it with createHarness({ journal: true }), or `x402-kit up --journal`"],
  });
});
