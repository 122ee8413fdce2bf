import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { sql } from "kysely";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createLocalSigner } from "../chain/signing/local-signer.ts";
import type { Database } from "../ledger/database/database.ts";
import { migrate, openDatabase } from "../ledger/database/open-database.ts";
import { createLogger } from "../observe/log/logger.ts";
import { harnessAccounts } from "../payer/accounts.ts";
import { networks } from "../protocol/networks.ts";
import { createOrganizations } from "./organizations/create-organizations.ts";
import { createCore, createService, type ServiceCore } from "./service.ts";
import { openParts, type ServiceOptions } from "./service-parts.ts";

/* What the service does about its database; no network is needed for that. */

let folder: string;
let database: Database;
let core: ServiceCore;
let logged: string[];

let options: ServiceOptions;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "x402-kit-service-"));
  database = await openDatabase({ url: `sqlite:${join(folder, "ledger.db")}` });
  await migrate(database);
  logged = [];
  options = {
    networks: [
      {
        ...networks.base,
        assets: [networks.base.usdc],
        facilitatorContract: harnessAccounts.operator.address,
        // Nothing listens there.
        rpcUrls: ["http://127.0.0.1:1"],
        confirmations: 1,
        maxFeePerGas: 10n ** 11n,
      },
    ],
    signers: [createLocalSigner(harnessAccounts.operator.privateKey)],
    database,
    apiKeyPepper: "a pepper",
    // Renewed every millisecond.
    leaseMs: 6,
    logger: createLogger("info", { write: (line: string) => void logged.push(line) }),
  };
  core = createCore(options);
});
afterEach(() => rmSync(folder, { recursive: true }));

test.each([1, 2, 3, 4, 5])("leases are not renewed in a closed database (%i)", async (ms) => {
  await delay(ms);
  await core.stop();
  await core.close();
  await delay(20);
  expect(logged).toEqual([]);
});

test("a service that was never stopped, as one that could not start, renews nothing after it is closed", async () => {
  await core.close();
  await delay(20);
  expect(logged).toEqual([]);
});

test("a database that takes no writes makes every network not ready, and the log says so once", async () => {
  await delay(10);
  await sql`alter table commits rename to elsewhere`.execute(database);
  const detail = "The database cannot be written";
  expect(await core.checkHealth()).toEqual({ base: { ready: false, detail } });
  expect(await core.checkHealth()).toEqual({ base: { ready: false, detail } });
  await sql`alter table elsewhere rename to commits`.execute(database);
  expect((await core.checkHealth()).base?.detail).toBe("not reached yet");
  const messages = logged.map((line) => JSON.parse(line).msg);
  expect(messages).toEqual([
    "the database keeps nothing that is written, so no payment should be settled",
    "the database takes writes again",
  ]);
  await core.close();
});

test("a pepper that is changed in the database makes every network not ready, and the log says so once", async () => {
  await delay(10);
  const other = createOrganizations({ db: database, pepper: "another pepper", now: Date.now });
  await other.acceptPepper();
  const detail =
    "API_KEY_PEPPER is not the one that the API keys were made with, so every key would be answered 401";
  expect(await core.checkHealth()).toEqual({ base: { ready: false, detail } });
  expect(await core.checkHealth()).toEqual({ base: { ready: false, detail } });
  expect(logged.map((line) => JSON.parse(line).msg)).toEqual([detail]);
  await core.close();
});

test("a service that closes while its database is away records what became of its answers once it is back", async () => {
  const own = await openDatabase({ url: `sqlite:${join(folder, "ledger.db")}` });
  const lasting = { ...options, database: own, leaseMs: 30_000 };
  const parts = openParts(lasting);
  const service = await createService(lasting, parts);
  const id = `0x${"5e".repeat(32)}` as const;
  await parts.ledger.leases.acquireLease(id, "request");
  const leases = async () => (await sql`select id from leases`.execute(database)).rows;
  expect(await leases()).toEqual([{ id }]);
  await sql`alter table settlements rename to elsewhere`.execute(database);
  await expect(parts.ledger.leases.markDelivered(id, "request")).rejects.toThrow();
  const closed = service.close();
  await delay(50);
  await sql`alter table elsewhere rename to settlements`.execute(database);
  await closed;
  expect(await leases()).toEqual([]);
  await core.close();
});

test("leases are renewed however long it takes to record what was answered", async () => {
  const parts = openParts(options);
  let renewals = 0;
  const ledger = {
    ...parts.ledger,
    leases: {
      ...parts.ledger.leases,
      retryWrites: () => new Promise<void>(() => {}),
      async renewLeases() {
        renewals++;
      },
    },
  };
  const service = await createService(options, { ...parts, ledger });
  await expect.poll(() => renewals).toBeGreaterThan(3);
  await service.close();
  await core.close();
});

test("a renewal of leases that fails is tried again at once, and not when it is due again", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const lasting = { ...options, leaseMs: 60_000 };
  const parts = openParts(lasting);
  let failures = 0;
  const ledger = {
    ...parts.ledger,
    leases: {
      ...parts.ledger.leases,
      async renewLeases() {
        failures++;
        throw new Error("the database is away");
      },
    },
  };
  const service = await createService(lasting, { ...parts, ledger });
  vi.advanceTimersByTime(10_000);
  vi.useRealTimers();
  await expect.poll(() => failures).toBeGreaterThan(2);
  await service.close();
  const ended = failures;
  await delay(500);
  expect(failures).toBe(ended);
  await core.close();
});
