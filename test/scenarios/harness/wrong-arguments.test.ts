import { join } from "node:path";
import { privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  createFixtureEngine,
  createFixtures,
  findScenario,
  handlers,
  signForScenario,
} from "../../../src/fixtures/index.ts";
import { type MockServer, startMockServer } from "../../../src/fixtures/mock-server/index.ts";
import {
  ConfigurationError,
  connectHarness,
  createHarness,
  type Harness,
  KitError,
} from "../../../src/harness/index.ts";
import { leaseHarness, startHarnessPool } from "../../../src/harness/pool/index.ts";
import { createGlobalSetup } from "../../../src/harness/vitest/global-setup.ts";
import { migrate, openDatabase } from "../../../src/ledger/database/open-database.ts";
import { networks, signAuthorization } from "../../../src/methods/index.ts";
import {
  type OpenOrganizations,
  openOrganizations,
} from "../../../src/service/organizations/open-organizations.ts";
import { accountOf, keyOf } from "../../support/key-accounts.ts";
import { makeDirectory } from "../../support/serve/command.ts";
import { pepper } from "../../support/serve/deployed-chains.ts";

/* What JavaScript may give to the functions of the package: a sentence with the name, and no TypeError from within. */

/** The type that fits every parameter: callers in JavaScript may pass anything. */
type Anything = never;
type Call = (value: Anything) => unknown;

const cyclic: Record<string, unknown> = { network: "base" };
cyclic.itself = cyclic;
const hostile: Readonly<Record<string, unknown>> = {
  null: null,
  "a number": 5,
  NaN: Number.NaN,
  "a huge number": 1e300,
  "a negative bigint": -1n,
  "a huge bigint": 2n ** 300n,
  "a text": "x",
  "control characters": "\u001b[2J\r\n",
  "a list": [null],
  "a cycle": cyclic,
  "a function": () => {},
  "an unknown option": { timout: 1 },
  "an invalid date": new Date(Number.NaN),
};

const givenUp = new KitError("given up");
const signal = AbortSignal.abort(givenUp);

let harness: Harness<"base">;
let mock: MockServer;
let organizations: OpenOrganizations;
let directory: Awaited<ReturnType<typeof makeDirectory>>;
beforeAll(async () => {
  directory = await makeDirectory();
  const databaseUrl = `sqlite:${join(directory.path, "facilitator.db")}`;
  const db = await openDatabase({ url: databaseUrl });
  await migrate(db);
  await db.destroy();
  organizations = await openOrganizations({ databaseUrl, pepper, actor: "a test" });
  await organizations.create({ id: "shop", name: "Shop" });
  await organizations.setRecipient("shop", "base", accountOf("a wallet").address);
  harness = await createHarness({ networks: ["base"] });
  mock = await startMockServer();
});
afterAll(async () => {
  await harness?.close();
  await mock?.close();
  await organizations?.close();
  await directory?.[Symbol.asyncDispose]();
});

const signer = privateKeyToAccount(keyOf("a buyer"));
const { usdc } = networks.base;
const terms = { asset: usdc, chainId: 8453, to: usdc.address, value: 1n, validBefore: 2n ** 40n };

const option =
  (name: string) =>
  (value: unknown): Promise<unknown> =>
    createHarness({ [name]: value, signal } as Anything);
const engine = createFixtureEngine({ networks: ["base"] });
const closeAfter = async (starting: Promise<{ close(): Promise<void> }>) => (await starting).close();

const calls: Readonly<Record<string, Call>> = {
  createHarness: (value) =>
    createHarness(Object.keys(Object(value)).length === 0 ? value : { signal, ...Object(value) }),
  ...Object.fromEntries(
    [
      ...["networks", "networkFile", "contracts", "assets", "recipient", "organizations", "fork", "host"],
      ...[
        "allowHosts",
        "port",
        "rpcPorts",
        "settleWaitMs",
        "logLevel",
        "recovery",
        "journal",
        "studio",
        "seed",
      ],
      "anvilBinary",
    ].map((name) => [`createHarness({ ${name} })`, option(name)]),
  ),
  "createHarness({ contracts: { mainnet } })": (mainnet) => option("contracts")({ mainnet }),
  "createHarness({ assets: { base } })": (base) => option("assets")({ base }),
  "createHarness({ assets: { base: { decimals } } })": (decimals) =>
    option("assets")({ base: { address: `0x${"ab".repeat(20)}`, decimals } }),
  "createHarness({ rpcPorts: { base } })": (base) => option("rpcPorts")({ base }),
  "createHarness({ fork: { base } })": (base) => option("fork")({ base }),
  connectHarness: (value) => connectHarness(value),
  "connectHarness(, networks)": (value) => connectHarness(harness.facilitator.url, value),
  startHarnessPool: (value) => startHarnessPool({ networks: ["x"], ...Object(value) }),
  leaseHarness: (value) => leaseHarness(value),
  createGlobalSetup: (value) => createGlobalSetup(value) && undefined,

  pay: (value) => harness.pay(value),
  sign: (value) => harness.sign(value),
  ...Object.fromEntries(
    [
      "network",
      "payer",
      "amount",
      "scheme",
      "method",
      "max",
      "x402Version",
      "validForSeconds",
      "resource",
      "authorization",
    ].flatMap((name) => [
      [`sign({ ${name} })`, (value: Anything) => harness.sign({ network: "base", [name]: value })],
      [`fixtures.payment({ ${name} })`, (value: Anything) => engine.payment({ [name]: value })],
    ]),
  ),
  "sign({ authorization: { value } })": (value) =>
    harness.sign({ network: "base", authorization: { value } }),
  "sign({ authorization: { validBefore } })": (validBefore) =>
    harness.sign({ network: "base", authorization: { validBefore } }),
  verify: (value) => harness.verify(value),
  settle: (value) => harness.settle(value),
  "settle(, options)": (value) => harness.settle({}, value),
  "settle(, { idempotencyKey })": (idempotencyKey) => harness.settle({}, { idempotencyKey }),
  as: (value) => harness.as(value).verify({}),
  buyer: (value) => harness.buyer(value),
  "shopConfig(network)": (value) => harness.shopConfig(value, 1n),
  "shopConfig(, amount)": (value) => harness.shopConfig("base", value),
  "shopConfig(,, options)": (value) => harness.shopConfig("base", 1n, value),
  nextPayment: (value) => harness.nextPayment({ timeoutMs: 1, ...Object(value ?? { wrong: value }) }),
  "nextPayment({ timeoutMs })": (timeoutMs) =>
    harness.nextPayment({ timeoutMs: timeoutMs === 5 ? 1 : timeoutMs }),
  "journal.payment": (value) => harness.journal.payment(value),
  "journal.describe": (value) => harness.journal.describe(value),
  "faults.on": (value) => harness.faults.on(value).delay(1),
  "faults.on(, match)": (value) => harness.faults.on("base", value).delay(1),
  "faults.onFacilitator": (value) => harness.faults.onFacilitator(value).delay(1),
  "faults.onFacilitator({ operation })": (operation) => harness.faults.onFacilitator({ operation }).delay(1),
  ...Object.fromEntries(
    (["delay", "rateLimited", "malformed", "staleHead", "status", "receiptOfAnother"] as const).map(
      (name) => [
        `faults.on().${name}`,
        (value: Anything) => (harness.faults.on("base")[name] as Call)(value),
      ],
    ),
  ),
  "faults.on().error": (value) => harness.faults.on("base").error(value, value),
  "faults.chain": (value) => harness.faults.chain(value).holdBlocks(),
  ...Object.fromEntries(
    (["drop", "reorg", "baseFee"] as const).map((name) => [
      `faults.chain().${name}`,
      (value: Anything) => (harness.faults.chain("base")[name] as Call)(value),
    ]),
  ),
  "fund(account)": (value) => harness.networks.base.fund(value, 1n),
  "fund(, amount)": (value) => harness.networks.base.fund(harness.organization.recipient, value),
  "approvePermit2(account)": (value) => harness.networks.base.approvePermit2(value, 1n),
  "approvePermit2(, amount)": (value) =>
    harness.networks.base.approvePermit2(harness.organization.recipient, value),
  balanceOf: (value) => harness.networks.base.balanceOf(value),
  mine: (value) => harness.networks.base.mine(value),
  advanceTime: (value) => harness.networks.base.advanceTime(value),
  advanceTimeTo: (value) => harness.networks.base.advanceTimeTo(value),

  createFixtures: (value) => createFixtures(value).dispose(),
  handlers: (value) => handlers(value),
  createFixtureEngine: (value) => createFixtureEngine(value) && undefined,
  ...Object.fromEntries(
    ["networks", "addedNetworks", "contracts", "assets", "apiKeys", "balances", "clock"].map((name) => [
      `createFixtureEngine({ ${name} })`,
      (value: Anything) => createFixtureEngine({ [name]: value }) && undefined,
    ]),
  ),
  "fixtures.payment": (value) => engine.payment(value),
  "fixtures.scenario": (value) => engine.scenario(value),
  "fixtures.sequence": (value) => engine.sequence(value),
  "fixtures.advanceTime": (value) => createFixtureEngine().advanceTime(value),
  "fixtures.scenario().times": (value) => createFixtureEngine().scenario("settle.429").times(value),
  "fixtures.scenario().delay": (value) => createFixtureEngine().scenario("settle.429").delay(value),
  findScenario: (value) => findScenario(value),
  "signForScenario(payer)": (value) =>
    signForScenario(value, {
      asset: engine.environment.network.assets[0],
      chainId: 8453,
      to: engine.environment.network.facilitatorContract,
      value: 1n,
      validBefore: 1n,
    }),
  startMockServer: (value) => closeAfter(startMockServer(value)),
  ...Object.fromEntries(
    ["host", "allowHosts", "port", "corsOrigins", "scenarios", "networks"].map((name) => [
      `startMockServer({ ${name} })`,
      (value: Anything) => closeAfter(startMockServer({ [name]: value })),
    ]),
  ),
  createSession: (value) => mock.createSession(value).close(),
  openOrganizations: (value) => openOrganizations(value),
  ...Object.fromEntries(
    ["databaseUrl", "pepper", "actor", "facilitatorContracts", "addedNetworks"].map((name) => [
      `openOrganizations({ ${name} })`,
      (value: Anything) =>
        openOrganizations({ databaseUrl: "sqlite:/nowhere/x.db", pepper: "", actor: "x", [name]: value }),
    ]),
  ),
  "signAuthorization(signer)": (value) => signAuthorization(value, terms),
  signAuthorization: (value) => signAuthorization(signer, value),
  ...Object.fromEntries(
    ["asset", "chainId", "value", "validAfter", "validBefore"].map((name) => [
      `signAuthorization(, { ${name} })`,
      (value: Anything) => signAuthorization(signer, { ...terms, [name]: value }),
    ]),
  ),
  "organizations.create": (value) => organizations.create(value),
  "organizations.create({ id })": (id) => organizations.create({ id, name: "x" }),
  "organizations.create({ name })": (name) => organizations.create({ name }),
  "organizations.find": (value) => organizations.find(value),
  "organizations.setRecipient": (value) => organizations.setRecipient(value, value, value),
  "organizations.setRecipient(, , recipient)": (value) => organizations.setRecipient("shop", "base", value),
  "organizations.setLimits": (value) => organizations.setLimits(value, value, value),
  "organizations.setLimits(, , limits)": (value) => organizations.setLimits("shop", "base", value),
  "organizations.setLimits(, , { minimumAmount })": (minimumAmount) =>
    organizations.setLimits("shop", "base", { minimumAmount }),
  "organizations.listKeys": (value) => organizations.listKeys(value),
  "organizations.listChanges": (value) => organizations.listChanges(value),
  "organizations.revokeKey": (value) => organizations.revokeKey(value),
  "organizations.createKey": (value) => organizations.createKey(value, value),
  "organizations.createKey(, options)": (value) => organizations.createKey("shop", value),
  ...Object.fromEntries(
    ["scopes", "expiresAt", "key"].map((name) => [
      `organizations.createKey(, { ${name} })`,
      (value: Anything) => organizations.createKey("shop", { scopes: ["verify"], [name]: value }),
    ]),
  ),
  "organizations.rotateKey": (value) => organizations.rotateKey(value, value),
  "organizations.rotateKey(, { graceMs })": (graceMs) => organizations.rotateKey("x", { graceMs }),
  "organizations.authenticate": (value) => organizations.authenticate(value),
};

/** The error that a call throws; undefined if it takes the value. */
async function thrownBy(call: Call, value: unknown): Promise<unknown> {
  try {
    await call(value as Anything);
  } catch (error) {
    return error;
  }
  return undefined;
}

/** Fixtures refuse names by a RangeError, and a base URL that is none by a TypeError; what Node itself throws is neither. */
const isOurs = (error: unknown) =>
  error instanceof KitError ||
  (error instanceof RangeError && !/^Invalid (?!Date)|BigInt because|call stack/.test(error.message));

test.each(Object.entries(calls))("%s: anything wrong is refused in a sentence", async (name, call) => {
  const wrong: string[] = [];
  for (const [what, value] of Object.entries(hostile)) {
    const error = await thrownBy(call, value);
    if (error !== undefined && !isOurs(error)) wrong.push(`${name} of ${what}: ${String(error)}`);
  }
  await harness.faults.clear();
  expect(wrong).toEqual([]);
});

test.each<[string, () => unknown, string]>([
  [
    "an option of createHarness",
    () => createHarness({ newtorks: ["base"], signal } as Anything),
    "newtorks: is no option; did you mean networks?",
  ],
  [
    "an option of one that is there at all",
    () => createHarness({ contracts: { mainet: "0x", ...{} }, signal } as Anything),
    "contracts.mainet: is no option; did you mean mainnet?",
  ],
  [
    "what is paid",
    () => harness.pay({ network: "base", ammount: 5n } as Anything),
    "ammount: is no option; did you mean amount?",
  ],
  [
    "an amount that is a number",
    () => harness.networks.base.fund(harness.organization.recipient, 5 as Anything),
    'amount: 5 is not an amount: whole tokens as a text, or a bigint below 2^256 in the smallest unit (for example "0.01")',
  ],
  [
    "a match of the facilitator's faults",
    () => harness.faults.onFacilitator(null as Anything).reset(),
    "options: null is not an object; there are operation, nth, times",
  ],
  [
    "the options of a fault",
    () => harness.faults.on("base").rateLimited(5 as Anything),
    "options: 5 is not an object; there are retryAfterSeconds",
  ],
  [
    "an option of a pool",
    () => startHarnessPool({ maxHarneses: 2 } as Anything),
    "maxHarneses: is no option; did you mean maxHarnesses?",
  ],
  [
    "an option of the fixtures",
    () => createFixtures({ baseurl: "https://a.example" } as Anything),
    "baseurl: is no option; did you mean baseUrl?\nbaseUrl: is needed: a text",
  ],
  [
    "an option of the mock",
    () => startMockServer({ corsOrigin: "*" } as Anything),
    "corsOrigin: is no option; did you mean corsOrigins?",
  ],
  [
    "a payer of the fixtures",
    () => engine.payment({ payer: "fundd" as Anything }),
    'payer: "fundd" is not one of funded, empty, unapproved, approvedShort, sponsored, blacklisted, smartWallet, undeployedWallet, delegated, hijacked, gasBurner, fickle',
  ],
  [
    "a payer of the fixtures who pays by Permit2",
    () => engine.payment({ payer: { address: "0x" } as Anything, method: "permit2" }),
    "payer: an object is not the name of a test payer, or an object with address and privateKey",
  ],
  [
    "what organizations need",
    () => openOrganizations({ databaseUrl: "sqlite:x.db", actor: "me" } as Anything),
    "pepper: is needed: a text",
  ],
  [
    "a term of a payment, which would be valid at once",
    () => signAuthorization(signer, { ...terms, validAftr: 2n } as Anything),
    "terms.validAftr: is no option; did you mean validAfter?",
  ],
  [
    "no organization, which is not the oldest one",
    () => organizations.find(undefined as Anything),
    "id: is needed: a text",
  ],
  [
    "a scope of a key",
    () => organizations.createKey("shop", { scopes: ["verify", "settel"] as Anything }),
    "scopes: a list is not a list that has verify, settle or both, and nothing else",
  ],
  [
    "the expiry of a key, which would never expire",
    () => organizations.createKey("shop", { scopes: ["verify"], expiresat: 5 } as Anything),
    "expiresat: is no option; did you mean expiresAt?",
  ],
  [
    "the time that a replaced key still has",
    () => organizations.rotateKey("x", { grace: 5 } as Anything),
    "grace: is no option; did you mean graceMs?\ngraceMs: is needed: a whole number of milliseconds",
  ],
  [
    "a limit that is no bigint",
    () => organizations.setLimits("shop", "base", { minimumAmount: 5 as Anything }),
    "limits.minimumAmount: 5 is not a bigint, or null for none (for example 10_000n)",
  ],
])("%s: the sentence says what to change", async (_, call, message) => {
  const error = await thrownBy(call, undefined);
  expect(error).toBeInstanceOf(ConfigurationError);
  expect(error).toHaveProperty("message", message);
});
