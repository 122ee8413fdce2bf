import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { networkNames, networks } from "../protocol/networks.ts";
import { ConfigurationError } from "../util/errors.ts";
import { readEnvironment } from "./environment.ts";
import { variableNames } from "./variables.ts";

const key = `0x${"1a".repeat(32)}`;
const otherKey = `0x${"2b".repeat(32)}`;
const sponsorKey = `0x${"5e".repeat(32)}`;
const pepper = "3f9c1e7a5b2d8640f1e2d3c4b5a69788";
const contract = "0x857b06519E91e3A54538791bDbb0E22373e36b66";
const testContract = "0x652026B65e32ffC7487F89D68D208977789a04d3";

/** The least that `serve` can do with. */
const minimal = {
  BASE_RPC_URL: "https://base.example/key",
  FACILITATOR_CONTRACT_MAINNET: contract,
  OPERATOR_PRIVATE_KEY: key,
  API_KEY_PEPPER: pepper,
};

/** Has approvals sent that are transactions of payers. */
const approvals = { GAS_SPONSORING: "erc20ApprovalGasSponsoring" };

type Environment = Record<string, string>;

/** The problems of the smallest configuration after some changes, a line for each. */
function problemsOf(changes: Environment): string {
  try {
    readEnvironment({ ...minimal, ...changes });
    return "";
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return `\n${error.message}\n`;
  }
}

test("a delay that leaves no time to shut down is refused", () => {
  expect(() =>
    readEnvironment({ ...minimal, DRAIN_DELAY_MS: "30000", SHUTDOWN_TIMEOUT_MS: "30000" }),
  ).toThrow("DRAIN_DELAY_MS: leaves nothing of the 30000 ms of SHUTDOWN_TIMEOUT_MS");
});

test.each([
  { changes: { PORT: "9464", METRICS_PORT: "9464" }, name: "METRICS_PORT" },
  { changes: { ADMIN_PORT: "4402", ADMIN_TOKEN: pepper }, name: "ADMIN_PORT" },
  { changes: { METRICS_PORT: "9464", ADMIN_PORT: "9464", ADMIN_TOKEN: pepper }, name: "ADMIN_PORT" },
])("a port that another listener has is refused: $changes", ({ changes, name }) => {
  expect(problemsOf(changes)).toMatch(new RegExp(`^${name}: is \\d+, and so is `, "m"));
});

test("ports that the system chooses are not the same", () => {
  expect(problemsOf({ PORT: "0", METRICS_PORT: "0" })).toBe("");
});

test("the admin's key in the service's environment is warned of, and not repeated", () => {
  const { warnings } = readEnvironment({ ...minimal, DEPLOYER_PRIVATE_KEY: otherKey });
  expect(warnings.map(({ name }) => name)).toContain("DEPLOYER_PRIVATE_KEY");
  expect(JSON.stringify(warnings)).not.toContain(otherKey.slice(2));
});

test("needs four variables, and fills in the rest", () => {
  expect(readEnvironment(minimal)).toEqual({
    networks: [
      {
        ...networks.base,
        facilitatorContract: contract,
        payTo: "contract",
        rpcUrls: ["https://base.example/key"],
        assets: [networks.base.usdc],
        confirmations: 2,
        successEndpoints: 2,
        maxFeePerGas: 5_000_000_000n,
        maxTransactionCost: undefined,
        dailyGasBudget: 10n ** 17n,
        gasHorizonPayments: 500n,
        strictness: "spec",
        reasons: "spec",
        maxValiditySeconds: 86_400n,
        allowZeroValue: false,
      },
    ],
    operators: { kind: "local", privateKeys: [key] },
    authorizerKeys: [],
    recovererKey: undefined,
    databaseUrl: "sqlite:./facilitator.db",
    apiKeyPepper: pepper,
    host: "127.0.0.1",
    port: 4402,
    trustProxy: false,
    rateLimits: { key: { perSecond: 200, burst: 5_000 }, address: { perSecond: 20, burst: 5_000 } },
    maxSettles: 4_000,
    metrics: undefined,
    settleWaitMs: undefined,
    shutdown: { drainDelayMs: 3_000, timeoutMs: 30_000 },
    anonymousVerify: false,
    discovery: false,
    docs: false,
    logLevel: "info",
    warnings: [],
  });
});

test("takes other limits for what a payment may be", () => {
  const { networks: served } = readEnvironment({
    ...minimal,
    MAX_VALIDITY_SECONDS: "3600",
    ALLOW_ZERO_VALUE: "true",
    MAX_TRANSACTION_COST: "base=0.0105",
    DAILY_GAS_BUDGET: "base=none,polygon=20",
    GAS_HORIZON_PAYMENTS: "5000",
  });
  expect(served[0]).toMatchObject({
    maxValiditySeconds: 3_600n,
    allowZeroValue: true,
    maxTransactionCost: 10_500_000_000_000_000n,
    dailyGasBudget: null,
    gasHorizonPayments: 5_000n,
  });
});

test("takes everything that can be set", () => {
  const config = readEnvironment({
    ...minimal,
    BASE_RPC_URL: " https://one.example/key , http://127.0.0.1:8545 ",
    POLYGON_RPC_URL: "https://polygon.example",
    OPTIMISM_SEPOLIA_RPC_URL: "https://sepolia.example",
    FACILITATOR_CONTRACT_TESTNET: testContract.toLowerCase(),
    OPERATOR_PRIVATE_KEY: `${key},${otherKey.slice(2).toUpperCase()}`,
    RECOVERER_PRIVATE_KEY: `0x${"4d".repeat(32)}`,
    ASSETS: JSON.stringify([
      { network: "polygon", address: testContract, name: "EURC", version: "2", decimals: 6 },
      { network: "base", address: `0x${"98".repeat(20)}`, name: "Plain", decimals: 18 },
    ]),
    CONFIRMATIONS: "polygon=20, base=1",
    MAX_FEE_GWEI: "base=0.05",
    DATABASE_URL: "postgres://x402:hunter2@db.internal/x402",
    HOST: "::",
    PORT: "80",
    TRUST_PROXY: "10.0.0.0/8,loopback",
    RATE_LIMIT_KEY: "50/500",
    RATE_LIMIT_ADDRESS: "5/100",
    MAX_SETTLES: "100",
    METRICS_HOST: "10.0.0.5",
    METRICS_PORT: "9464",
    ADMIN_PORT: "4403",
    ADMIN_TOKEN: `${"f3".repeat(8)}0a9b8c7d6e5f4a3b2c1d`,
    SETTLE_WAIT_MS: "45000",
    ANONYMOUS_VERIFY: "true",
    API_DOCS: "true",
    LOG_LEVEL: "debug",
  });
  expect(
    config.networks.map(({ name, confirmations, maxFeePerGas }) => [name, confirmations, maxFeePerGas]),
  ).toEqual([
    ["base", 1, 50_000_000n],
    ["optimism-sepolia", 1, 20_000_000_000n],
    ["polygon", 20, 1_000_000_000_000n],
  ]);
  expect(config.networks.map(({ facilitatorContract }) => facilitatorContract)).toEqual([
    contract,
    testContract,
    contract,
  ]);
  expect(config.networks[0]?.rpcUrls).toEqual(["https://one.example/key", "http://127.0.0.1:8545"]);
  expect(config.networks[2]?.assets).toEqual([
    networks.polygon.usdc,
    { address: testContract, name: "EURC", version: "2", decimals: 6 },
  ]);
  expect(config).toMatchObject({
    operators: { kind: "local", privateKeys: [key, otherKey] },
    recovererKey: `0x${"4d".repeat(32)}`,
    databaseUrl: "postgres://x402:hunter2@db.internal/x402",
    host: "::",
    port: 80,
    trustProxy: ["10.0.0.0/8", "loopback"],
    rateLimits: { key: { perSecond: 50, burst: 500 }, address: { perSecond: 5, burst: 100 } },
    maxSettles: 100,
    metrics: { host: "10.0.0.5", port: 9_464 },
    settleWaitMs: 45_000,
    anonymousVerify: true,
    docs: true,
    logLevel: "debug",
    warnings: [],
  });
});

test("takes operators that a remote signer signs for", () => {
  const { operators } = readEnvironment({
    ...minimal,
    OPERATOR_PRIVATE_KEY: "",
    OPERATOR_SIGNER_URL: "https://signer.internal",
    OPERATOR_ADDRESS: `${contract}, ${testContract}`,
  });
  expect(operators).toEqual({
    kind: "remote",
    url: "https://signer.internal",
    addresses: [contract, testContract],
  });
});

test("is frozen through and through", () => {
  const config = readEnvironment(minimal);
  expect(Object.isFrozen(config)).toBe(true);
  expect(Object.isFrozen(config.networks)).toBe(true);
  expect(Object.isFrozen(config.networks[0]?.rpcUrls)).toBe(true);
});

test("names everything that is missing, at once", () => {
  expect(
    problemsOf({
      BASE_RPC_URL: "",
      FACILITATOR_CONTRACT_MAINNET: "",
      OPERATOR_PRIVATE_KEY: " ",
      API_KEY_PEPPER: "",
    }),
  ).toMatchInlineSnapshot(`
    "
    BASE_RPC_URL: no network is served: give the RPC URL of one, by this or another *_RPC_URL (for example https://base.example/v2/KEY,https://base-2.example)
    FACILITATOR_CONTRACT_MAINNET: is needed for a mainnet, and FACILITATOR_CONTRACT_TESTNET for a test network; x402-kit deploy prints it (for example 0x4020000000000000000000000000000000000001)
    OPERATOR_PRIVATE_KEY: is needed, or OPERATOR_SIGNER_URL with OPERATOR_ADDRESS (for example 0x and 64 hexadecimal digits)
    API_KEY_PEPPER: is needed (for example what \`openssl rand -hex 32\` prints)
    "
  `);
});

test("names everything that is wrong, at once, in the order in which it is described", () => {
  expect(
    problemsOf({
      BASE_RPC_URL: "https://base.example,wss://base.example",
      POLYGON_RPC_URL: "polygon.example/secret-key",
      BASE_SEPOLIA_RPC_URL: "https://sepolia.example",
      FACILITATOR_CONTRACT_MAINNET: "0x857b06519E91e3A54538791bDbb0E22373e36b67",
      OPERATOR_PRIVATE_KEY: `${key},0x12`,
      RECOVERER_PRIVATE_KEY: `0x${"f".repeat(64)}`,
      ASSETS: "base:USDC",
      CONFIRMATIONS: "polgon=3",
      MAX_FEE_GWEI: "base=0",
      DATABASE_URL: "mysql://root:hunter2@db/x402",
      API_KEY_PEPPER: "too short",
      HOST: "example.com",
      PORT: "70000",
      TRUST_PROXY: "true",
      SETTLE_WAIT_MS: "1",
      ANONYMOUS_VERIFY: "yes",
      LOG_LEVEL: "verbose",
    }).replace(networkNames.join(", "), "NETWORKS"),
  ).toMatchInlineSnapshot(`
    "
    BASE_RPC_URL: the 2nd URL is not a URL that begins with https:// or http://; WebSockets are not supported (for example https://base.example/v2/KEY,https://base-2.example)
    POLYGON_RPC_URL: is not a URL that begins with https:// or http:// (for example https://polygon.example/v2/KEY)
    FACILITATOR_CONTRACT_MAINNET: has a wrong checksum (EIP-55): a digit may be mistyped (for example 0x4020000000000000000000000000000000000001)
    FACILITATOR_CONTRACT_TESTNET: is needed for base-sepolia; x402-kit deploy prints it (for example 0x4020000000000000000000000000000000000002)
    OPERATOR_PRIVATE_KEY: the 2nd key is not a private key: it has 2 hexadecimal digits, and a key has 64 (for example 0x and 64 hexadecimal digits)
    RECOVERER_PRIVATE_KEY: is not a private key: not above zero and below the order of secp256k1 (for example 0x and 64 hexadecimal digits)
    RECOVERER_PRIVATE_KEY: is not a private key: not above zero and below the order of secp256k1 (for example 0x and 64 hexadecimal digits)
    ASSETS: is not JSON; in a .env file put it in single quotes (for example [{"network":"base","address":"0x60a3E35Cc302bFA44Cb288Bc5a4F316Fdb1adb42","name":"EURC","version":"2","decimals":6}])
    CONFIRMATIONS: "polgon" is not one of NETWORKS (for example polygon=8,base=2)
    MAX_FEE_GWEI: base: "0" is not a number of gwei above 0 and below 1,000,000 (for example base=0.5,polygon=400)
    DATABASE_URL: must begin with sqlite: or be a URL that begins with postgres:// (for example postgres://USER:PASSWORD@HOST/DATABASE)
    API_KEY_PEPPER: has 9 characters; it needs 32 or more (for example what \`openssl rand -hex 32\` prints)
    HOST: "example.com" is not an IP address (for example 0.0.0.0)
    PORT: "70000" is not a whole number from 0 to 65535 (for example 8080)
    TRUST_PROXY: cannot be true: then every caller could choose the address it is limited by (for example 10.0.0.0/8)
    SETTLE_WAIT_MS: "1" is not a whole number from 100 to 600000 (for example 45000)
    ANONYMOUS_VERIFY: "yes" is not one of true, false (for example false)
    LOG_LEVEL: "verbose" is not one of fatal, error, warn, info, debug, trace, silent (for example debug)
    "
  `);
});

describe("refuses", () => {
  test.each<[string, Environment, string]>([
    [
      "one contract for mainnets and test networks",
      { FACILITATOR_CONTRACT_TESTNET: contract.toLowerCase() },
      "FACILITATOR_CONTRACT_TESTNET: is the address of the mainnets",
    ],
    [
      "a test network without a contract",
      { BASE_SEPOLIA_RPC_URL: "https://a.example", OPTIMISM_SEPOLIA_RPC_URL: "https://b.example" },
      "FACILITATOR_CONTRACT_TESTNET: is needed for base-sepolia, optimism-sepolia; x402-kit deploy prints it",
    ],
    [
      "a token as the contract",
      { FACILITATOR_CONTRACT_MAINNET: networks.base.usdc.address },
      "FACILITATOR_CONTRACT_MAINNET: is the address of a token of base",
    ],
    [
      "the zero address as the contract",
      { FACILITATOR_CONTRACT_MAINNET: `0x${"0".repeat(40)}` },
      "FACILITATOR_CONTRACT_MAINNET: is the zero address",
    ],
    [
      "the same RPC URL twice",
      { BASE_RPC_URL: "https://a.example,https://b.example,https://a.example" },
      "BASE_RPC_URL: the 3rd URL is the same as the 1st",
    ],
    [
      "the same RPC URL in another spelling",
      { BASE_RPC_URL: "https://a.example/v2/key,HTTPS://A.example:443/v2/key/#x" },
      "BASE_RPC_URL: the 2nd URL is the same as the 1st",
    ],
    [
      "an empty place in a list",
      { BASE_RPC_URL: "https://a.example," },
      "BASE_RPC_URL: the 2nd URL is empty",
    ],
    [
      "the same operator twice, however it is spelled",
      { OPERATOR_PRIVATE_KEY: `${key},${key.slice(2).toUpperCase()}` },
      "OPERATOR_PRIVATE_KEY: the 2nd key is the same as the 1st",
    ],
    [
      "a place for metrics without a port",
      { METRICS_HOST: "127.0.0.1" },
      "METRICS_PORT: is needed with METRICS_HOST",
    ],
    [
      "a token for operators without a port",
      { ADMIN_TOKEN: "9b1c5e0d7f3a2468ace013579bdf8642" },
      "ADMIN_PORT: is needed with ADMIN_TOKEN",
    ],
    [
      "a port for operators without a token",
      { ADMIN_PORT: "4403" },
      "ADMIN_TOKEN: is needed with ADMIN_PORT",
    ],
    ["a pepper of one", { API_KEY_PEPPER: "x" }, "API_KEY_PEPPER: has 1 character; it needs 32 or more"],
    [
      "a token for operators that can be guessed",
      { ADMIN_PORT: "4403", ADMIN_TOKEN: "letmein" },
      "ADMIN_TOKEN: has 7 characters; it needs 32 or more",
    ],
    [
      "a token for operators that no header can hold",
      { ADMIN_PORT: "4403", ADMIN_TOKEN: "9b1c5e0d7f3a2468ace013579bdf8642ü" },
      "ADMIN_TOKEN: holds characters that an Authorization header cannot; use letters and digits",
    ],
    [
      "rates that would refuse every request",
      { RATE_LIMIT_KEY: "0/100", RATE_LIMIT_ADDRESS: "20" },
      "RATE_LIMIT_ADDRESS: is not of the form PER_SECOND/BURST (for example 5/100)",
    ],
    [
      "a key of zero",
      { OPERATOR_PRIVATE_KEY: `0x${"0".repeat(64)}` },
      "OPERATOR_PRIVATE_KEY: is not a private key: not above zero and below the order of secp256k1",
    ],
    [
      "an operator as the recoverer",
      { RECOVERER_PRIVATE_KEY: key },
      "RECOVERER_PRIVATE_KEY: is an operator's key",
    ],
    [
      "an operator as the sponsor",
      { SPONSOR_PRIVATE_KEY: key, MAX_GIFT: "base=0.1", DAILY_GIFTS: "base=1" },
      "SPONSOR_PRIVATE_KEY: is the key of another account of the service",
    ],
    [
      "an operator as the authorizer",
      { AUTHORIZER_PRIVATE_KEY: `${sponsorKey},${key}` },
      "AUTHORIZER_PRIVATE_KEY: is the key of another account of the service",
    ],
    [
      "a sponsor without limits",
      { SPONSOR_PRIVATE_KEY: sponsorKey },
      "SPONSOR_PRIVATE_KEY: gives nothing: set MAX_GIFT and DAILY_GIFTS for a network",
    ],
    [
      "a sponsor with limits for another network",
      { SPONSOR_PRIVATE_KEY: sponsorKey, MAX_GIFT: "polygon=0.1", DAILY_GIFTS: "polygon=1" },
      "SPONSOR_PRIVATE_KEY: gives nothing: set MAX_GIFT and DAILY_GIFTS for a network",
    ],
    [
      "a bound of one gift without a day's",
      { SPONSOR_PRIVATE_KEY: sponsorKey, MAX_GIFT: "base=0.1" },
      "DAILY_GIFTS: is needed for base, which MAX_GIFT names: without it nothing is given there",
    ],
    [
      "a bound of a day's gifts without one gift's",
      { SPONSOR_PRIVATE_KEY: sponsorKey, DAILY_GIFTS: "base=0.1", MAX_GIFT: "polygon=1" },
      "MAX_GIFT: is needed for base, which DAILY_GIFTS names: without it nothing is given there",
    ],
    [
      "a local key and a remote signer together",
      { OPERATOR_SIGNER_URL: "https://signer.internal", OPERATOR_ADDRESS: contract },
      "OPERATOR_SIGNER_URL: is set, and so is OPERATOR_PRIVATE_KEY; keep one of them",
    ],
    [
      "a remote signer without an address",
      { OPERATOR_PRIVATE_KEY: "", OPERATOR_SIGNER_URL: "https://signer.internal" },
      "OPERATOR_ADDRESS: is needed with OPERATOR_SIGNER_URL",
    ],
    [
      "a token with a mistake in it",
      { ASSETS: `[{"network":"base","address":"0x12","name":"A","version":"1","decimals":6}]` },
      "ASSETS: at [0].address: is not an address: 0x and 40 hexadecimal digits",
    ],
    [
      "EIP-3009 for a token without a version",
      {
        ASSETS: `[{"network":"base","address":"${testContract}","name":"A","decimals":6,"transfers":["eip3009"]}]`,
      },
      "ASSETS: at [0].version: is needed for eip3009: that of the token's EIP-712 domain",
    ],
    [
      "a way to pay that tokens do not have",
      {
        ASSETS: `[{"network":"base","address":"${testContract}","name":"A","decimals":6,"transfers":["permit3"]}]`,
      },
      "ASSETS: at [0].transfers[0]:",
    ],
    [
      "a token without its decimals",
      { ASSETS: `[{"network":"base","address":"${testContract}","name":"A","version":"1"}]` },
      "ASSETS: at [0].decimals:",
    ],
    [
      "USDC as another token",
      {
        ASSETS: `[{"network":"base","address":"${networks.base.usdc.address.toLowerCase()}","name":"USDC","version":"2","decimals":6}]`,
      },
      "ASSETS: names USDC of base, which is allowed anyway",
    ],
    [
      "a pepper that repeats itself",
      { API_KEY_PEPPER: "ab".repeat(20) },
      "API_KEY_PEPPER: repeats a few characters",
    ],
    [
      "a pepper from an example",
      { API_KEY_PEPPER: "please-change-me-please-change-me" },
      "API_KEY_PEPPER: holds guessable words",
    ],
    ["a network named twice", { CONFIRMATIONS: "base=1,base=2" }, "CONFIRMATIONS: names base twice"],
    [
      "a number without its network",
      { CONFIRMATIONS: "3" },
      'CONFIRMATIONS: "3" is not of the form NETWORK=VALUE',
    ],
    [
      "no confirmations",
      { CONFIRMATIONS: "base=0" },
      'CONFIRMATIONS: base: "0" is not a whole number from 1 to 1000',
    ],
    ["a database in memory", { DATABASE_URL: "sqlite::memory:" }, "DATABASE_URL: is a database in memory"],
    ["a negative fee", { MAX_FEE_GWEI: "base=-1" }, 'MAX_FEE_GWEI: base: "-1" is not a number of gwei'],
    [
      "a proxy by name",
      { TRUST_PROXY: "proxy.internal" },
      'TRUST_PROXY: "proxy.internal" is neither an IP address',
    ],
    [
      "every address as a proxy",
      { TRUST_PROXY: "10.0.0.0/8,0.0.0.0/0" },
      "TRUST_PROXY: the 2nd address 0.0.0.0/0 is every address: then every caller could choose the address it is limited by",
    ],
    [
      "a password that is cut off by a slash in it",
      { DATABASE_URL: "postgres://pay:p@SECRETTAIL/w@host/db" },
      "DATABASE_URL: has an @ behind its host: in the user and the password, write @ as %40, / as %2F",
    ],
    [
      "a password that looks like a port and a fragment",
      { DATABASE_URL: "postgres://pay:12#SECRETTAIL@host/db" },
      "DATABASE_URL: has an @ behind its host",
    ],
    [
      "a Unix socket without a URL",
      { DATABASE_URL: "/var/run/postgresql" },
      "DATABASE_URL: is a path; a Postgres at a Unix socket is postgres://USER@/DATABASE?host=/DIRECTORY, and a file sqlite:PATH",
    ],
    ["a file", { DATABASE_URL: "/x/f.db" }, "DATABASE_URL: is a path: write sqlite:/x/f.db"],
    ["a file of the folder", { DATABASE_URL: "./bad.db" }, "DATABASE_URL: is a path: write sqlite:./bad.db"],
    ["a network too narrow", { TRUST_PROXY: "10.0.0.0/33" }, 'TRUST_PROXY: "10.0.0.0/33" is neither'],
  ])("%s", (_name, changes, problem) => {
    expect(problemsOf(changes)).toContain(problem);
  });
});

describe("warns, and goes on, of", () => {
  test.each<[string, Environment, string, string]>([
    [
      "RPC over plain http to another machine",
      { BASE_RPC_URL: "https://a.example,http://b.example/secret" },
      "BASE_RPC_URL",
      "the 2nd URL is http:// to another machine: an attacker on the way could read it and answer for it",
    ],
    [
      "a remote signer over plain http",
      { OPERATOR_PRIVATE_KEY: "", OPERATOR_SIGNER_URL: "http://10.0.0.7:9000", OPERATOR_ADDRESS: contract },
      "OPERATOR_SIGNER_URL",
      "the 1st URL is http:// to another machine: an attacker on the way could have transactions signed",
    ],
    [
      "a token of a network that is not served",
      {
        ASSETS: `[{"network":"polygon","address":"${testContract}","name":"A","version":"1","decimals":6}]`,
      },
      "ASSETS",
      `names the token ${testContract} of polygon, which is not served`,
    ],
    [
      "other machines that reach it, when it is not said whether a proxy stands between",
      { HOST: "0.0.0.0" },
      "TRUST_PROXY",
      "is not set: behind a proxy, all callers without a good API key count as one address; set it to false where there is none",
    ],
    [
      "confirmations that no settle waits for",
      { CONFIRMATIONS: "base=30" },
      "CONFIRMATIONS",
      "30 blocks of base take some 60 s, longer than a settle waits: it would never answer at once",
    ],
    [
      "gifts that nobody gives",
      { ...approvals, MAX_GIFT: "base=0.1", DAILY_GIFTS: "base=1" },
      "SPONSOR_PRIVATE_KEY",
      "is not set: MAX_GIFT and DAILY_GIFTS give nothing without it",
    ],
    [
      "gifts for approvals that are not sent",
      {
        SPONSOR_PRIVATE_KEY: sponsorKey,
        GAS_SPONSORING: "eip2612GasSponsoring",
        MAX_GIFT: "base=0.1",
        DAILY_GIFTS: "base=1",
      },
      "GAS_SPONSORING",
      "does not name erc20ApprovalGasSponsoring, for which MAX_GIFT and DAILY_GIFTS are: nothing is given",
    ],
    [
      "gifts above what one organization is given",
      { ...approvals, SPONSOR_PRIVATE_KEY: sponsorKey, MAX_GIFT: "base=0.6", DAILY_GIFTS: "base=1" },
      "MAX_GIFT",
      "is more than half of DAILY_GIFTS on base: no organization is given more of a day's gifts than it leaves for the others, so no gift is above half of them",
    ],
  ])("%s", (_name, changes, name, problem) => {
    expect(readEnvironment({ ...minimal, ...changes }).warnings).toMatchObject([{ name, problem }]);
  });

  test("nothing of gifts that are given", () => {
    const gifts = { SPONSOR_PRIVATE_KEY: sponsorKey, MAX_GIFT: "base=0.5", DAILY_GIFTS: "base=1" };
    const { networks: served, warnings } = readEnvironment({ ...minimal, ...approvals, ...gifts });
    expect([served[0]?.gifts, warnings]).toEqual([{ each: 5n * 10n ** 17n, daily: 10n ** 18n }, []]);
  });

  test.each(["http://127.0.0.1:8545", "http://localhost:8545", "http://[::1]:8545", "http://127.1.2.3"])(
    "nothing at %s, which is this machine",
    (url) => {
      expect(readEnvironment({ ...minimal, BASE_RPC_URL: url }).warnings).toEqual([]);
    },
  );
});

describe("a variable that does not exist, but was probably meant", () => {
  test.each([
    ["BASE_RPC_URLS", "BASE_RPC_URL"],
    ["BASE_RPC", "BASE_RPC_URL"],
    ["BASE_SEPOLIA_RPC_URI", "BASE_SEPOLIA_RPC_URL"],
    ["base_rpc_url", "BASE_RPC_URL"],
    ["API_KEY_PEPER", "API_KEY_PEPPER"],
    ["API_KEY_PEPPER_FILES", "API_KEY_PEPPER_FILE"],
    ["CONFIRMATION", "CONFIRMATIONS"],
    ["OPERATOR_PRIVATE_KEYS", "OPERATOR_PRIVATE_KEY"],
    ["OPERATOR_ADDRESSES", "OPERATOR_ADDRESS"],
    ["FACILITATOR_CONTRACT_MAINET", "FACILITATOR_CONTRACT_MAINNET"],
    ["SETTLE_WAIT", "SETTLE_WAIT_MS"],
    ["X402_KIT_URI", "X402_KIT_URL"],
  ])("%s is refused with the likely name", (name, meant) => {
    expect(problemsOf({ [name]: "x" })).toBe(`\n${name}: no such variable; did you mean ${meant}?\n`);
  });

  test.each([
    ...["HOME", "HOSTNAME", "HOSTS", "PATH", "SPORT", "NODE_ENV", "X402_NETWORK", "BASE_URL", "PGHOST"],
    ...["OPERATOR_SERVICE_HOST", "OPERATOR_SERVICE_PORT_HTTP", "METRICS_PORT_80_TCP_ADDR"],
  ])("%s belongs to another program", (name) => {
    expect(problemsOf({ [name]: "x" })).toBe("");
  });

  test("is none when it is empty", () => {
    expect(problemsOf({ BASE_RPC_URLS: " " })).toBe("");
  });
});

describe("a secret from a file", () => {
  const directory = mkdtempSync(join(tmpdir(), "x402-kit-test-"));
  afterAll(() => rmSync(directory, { recursive: true }));
  const write = (name: string, text: string) => {
    writeFileSync(join(directory, name), text);
    return join(directory, name);
  };

  test("counts as if the variable held it", () => {
    const config = readEnvironment({
      ...minimal,
      OPERATOR_PRIVATE_KEY: "",
      API_KEY_PEPPER: "",
      BASE_RPC_URL_FILE: write("rpc", "https://other.example/key"),
      BASE_RPC_URL: "",
      OPERATOR_PRIVATE_KEY_FILE: write("operators", `${key},\n${otherKey}\n`),
      RECOVERER_PRIVATE_KEY_FILE: write("recoverer", `0x${"4d".repeat(32)}`),
      API_KEY_PEPPER_FILE: write("pepper", `${pepper}\n`),
      DATABASE_URL_FILE: write("database", "postgres://x402:hunter2@db/x402"),
    });
    expect(config).toMatchObject({
      networks: [{ name: "base", rpcUrls: ["https://other.example/key"] }],
      operators: { kind: "local", privateKeys: [key, otherKey] },
      recovererKey: `0x${"4d".repeat(32)}`,
      apiKeyPepper: pepper,
      databaseUrl: "postgres://x402:hunter2@db/x402",
    });
  });

  test("is refused beside the variable, when the file is missing or empty, and when its text is wrong", () => {
    const problems = problemsOf({
      OPERATOR_PRIVATE_KEY: "",
      OPERATOR_PRIVATE_KEY_FILE: write("wrong", "hunter2"),
      RECOVERER_PRIVATE_KEY_FILE: "/nowhere/recoverer",
      DATABASE_URL_FILE: write("empty", " \n"),
      API_KEY_PEPPER_FILE: write("pepper", pepper),
    });
    expect(problems.replaceAll(directory, "DIRECTORY")).toMatchInlineSnapshot(`
      "
      OPERATOR_PRIVATE_KEY_FILE: is not a private key: write 0x and 64 hexadecimal digits
      RECOVERER_PRIVATE_KEY_FILE: names the file /nowhere/recoverer, which does not exist
      RECOVERER_PRIVATE_KEY_FILE: names the file /nowhere/recoverer, which does not exist
      DATABASE_URL_FILE: names the file DIRECTORY/empty, which is empty
      API_KEY_PEPPER_FILE: is set, and so is API_KEY_PEPPER; keep one of them
      "
    `);
  });

  test("is for secrets alone", () => {
    expect(problemsOf({ METRICS_PORT_FILE: "/port" })).toContain(
      "METRICS_PORT_FILE: no such variable; did you mean METRICS_PORT?",
    );
  });
});

test("no message repeats what may be secret, whichever variable it was pasted into", {
  timeout: 30_000,
}, () => {
  const secrets = [
    key,
    key.slice(2),
    pepper,
    "https://base.example/v2/provider-secret",
    "postgres://x402:hunter2-is-the-password@db/x402",
    "postgres://pay:p@hunter2-is-the-password/w@host/db",
  ];
  for (const name of variableNames.flatMap((one) => [one, `${one}_FILE`])) {
    for (const secret of secrets) {
      for (const text of [secret, `${secret},${secret}`, `base=${secret}`, `${secret}=1`, `[${secret}`]) {
        expect(problemsOf({ [name]: text })).not.toContain(secret);
      }
    }
  }
});
