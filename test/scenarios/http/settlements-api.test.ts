import type { FastifyInstance } from "fastify";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { waysToPay } from "../../../src/methods/on-chain/ways-to-pay.ts";
import { createLogger } from "../../../src/observe/log/logger.ts";
import { settlementListSchema } from "../../../src/protocol/answers.ts";
import { createFacilitator } from "../../../src/service/facilitator/facilitator.ts";
import { createApp } from "../../../src/service/http/app.ts";
import { createOrganizations } from "../../../src/service/organizations/create-organizations.ts";
import { createOutcomes } from "../../../src/service/relayer/slot.ts";
import { backends, useTestDatabase } from "../../support/databases.ts";
import { createTestLedger, paymentOf, settled } from "../../support/ledger/test-ledger.ts";

/*
 * `GET /v1/settlements`, from the HTTP request to the database. It needs no network.
 */

describe.each(backends)("on $name", (backend) => {
  const database = useTestDatabase(backend);
  let app: FastifyInstance;
  let key: string;
  const firstClaim = Date.parse("2026-11-20T10:00:00Z");

  beforeEach(async () => {
    const db = await database.open();
    let time = firstClaim;
    const now = () => time;
    const ledger = createTestLedger(db, now);
    const organizations = createOrganizations({ db, pepper: "a pepper for tests", now });
    for (const id of ["shop", "bakery"]) await organizations.create({ id, name: id });
    ({ key } = await organizations.createKey("shop", { scopes: ["verify"] }));

    await ledger.introduce();
    const claims = Array.from({ length: 9 }, (_, index) =>
      paymentOf(index, { payer: index, organizationId: index % 3 === 0 ? "bakery" : "shop" }),
    );
    for (const claim of claims) {
      await ledger.claimAll([claim]);
      time += 60_000;
    }
    await ledger.mine(1, claims.slice(1, 2).map(settled));

    app = await createApp({
      facilitator: createFacilitator({
        networks: new Map(),
        recoveries: new Map(),
        ledger,
        ways: waysToPay,
        outcomes: createOutcomes(),
        now,
        settleWaitMs: { 1: 1_000, 2: 1_000 },
        closing: new AbortController().signal,
        serviceId: "test",
      }),
      organizations,
      checkHealth: async () => ({}),
      now,
      logger: createLogger("fatal"),
    });
  });
  afterEach(() => app.close());

  const get = (query = "", authorization = key) =>
    app.inject({ url: `/v1/settlements${query}`, headers: { authorization } });
  const list = async (query = "") => {
    const response = await get(query);
    expect(response.statusCode, response.body).toBe(200);
    return settlementListSchema.parse(response.json());
  };
  const timesOf = ({ settlements }: Awaited<ReturnType<typeof list>>) =>
    settlements.map(({ claimedAt }) => claimedAt.slice(11, 16));

  test("lists the organization's own, newest first, and no others", async () => {
    const listed = await list();
    expect(timesOf(listed)).toEqual(["10:08", "10:07", "10:05", "10:04", "10:02", "10:01"]);
    expect(listed.next).toBeNull();
    expect(listed.settlements.at(-1)).toEqual({
      id: paymentOf(1, { payer: 1 }).id,
      state: "settled",
      network: "base",
      asset: "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913",
      payer: paymentOf(1, { payer: 1 }).payer,
      authorizationNonce: paymentOf(1).nonce,
      value: "10",
      maximum: "10",
      recipient: paymentOf(1).recipient,
      transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
      blockNumber: "60",
      failure: null,
      claimedAt: "2026-11-20T10:01:00.000Z",
      concludedAt: "2026-11-20T10:09:00.000Z",
      deliveredAt: null,
    });
  });

  test("goes on page by page", async () => {
    const pages = [await list("?limit=4")];
    pages.push(await list(`?limit=4&cursor=${pages[0]?.next}`));
    expect(pages.flatMap(timesOf)).toEqual(["10:08", "10:07", "10:05", "10:04", "10:02", "10:01"]);
    expect(pages.map(({ next }) => next === null)).toEqual([false, true]);
  });

  test.each<[string, string[]]>([
    ["?state=settled", ["10:01"]],
    ["?state=failed", []],
    ["?network=base&state=submitted&limit=2", ["10:08", "10:07"]],
    ["?network=eip155:8453&state=settled", ["10:01"]],
    ["?network=polygon", []],
    [`?payer=${paymentOf(0, { payer: 5 }).payer.toUpperCase().replace("0X", "0x")}`, ["10:05"]],
    // A payer of another organization.
    [`?payer=${paymentOf(0, { payer: 3 }).payer}`, []],
    ["?from=2026-11-20T10:05:00Z", ["10:08", "10:07", "10:05"]],
    ["?to=2026-11-20T12:05:00%2B02:00", ["10:04", "10:02", "10:01"]],
    ["?from=2026-11-20&to=2026-11-21", ["10:08", "10:07", "10:05", "10:04", "10:02", "10:01"]],
    ["?from=2026-11-21", []],
  ])("filters by %s", async (query, times) => {
    expect(timesOf(await list(query))).toEqual(times);
  });

  test.each<[string, string]>([
    ["?limit=0", "limit must be a whole number from 1 to 100"],
    ["?limit=101", "limit must be a whole number from 1 to 100"],
    ["?limit=1e1", "limit must be a whole number from 1 to 100"],
    ["?network=ethereum", "network is not a network of this service"],
    ["?state=done", "state must be one of submitted, settled, failed, recovered"],
    ["?payer=0x12", "payer must be an address: 0x and 40 hexadecimal digits, and has 2"],
    ["?from=yesterday", "from must be an ISO 8601 date, or date and time with zone"],
    ["?to=2026-11-20T10:00:00", "to must be an ISO 8601 date, or date and time with zone"],
    ["?cursor=1-2", "cursor is none that this service gave"],
    ["?organizationId=bakery", 'Unrecognized key: "organizationId"'],
    [
      "?limit=0&state=done",
      "state must be one of submitted, settled, failed, recovered; limit must be a whole number from 1 to 100",
    ],
  ])("refuses %s", async (query, detail) => {
    const response = await get(query);
    expect(response.statusCode).toBe(400);
    expect(response.headers["content-type"]).toContain("application/problem+json");
    expect(response.json().detail).toBe(detail);
  });

  test("needs a key, and says nothing about the query without one", async () => {
    const response = await get("?limit=0", "x4k_nobody_0123456789abcdef0123456789abcdef");
    expect(response.statusCode).toBe(401);
  });

  test("another organization's cursor shows nothing of it", async () => {
    const [newest] = (await list("?limit=1")).settlements;
    const elsewhere = await list(`?cursor=${firstClaim + 3 * 60_000}-${newest?.id.slice(2)}`);
    expect(timesOf(elsewhere)).toEqual(["10:02", "10:01"]);
  });
});
