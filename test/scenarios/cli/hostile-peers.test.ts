import { mkdtemp, rm } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { originOf } from "../../../src/harness/control/description.ts";
import { localContracts } from "../../../src/payer/local-chains.ts";
import { testKeys } from "../../../src/payer/test-keys.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { networks } from "../../../src/protocol/networks.ts";
import { listenOnLoopback } from "../../support/loopback-server.ts";
import { runHere } from "../../support/run-here.ts";
import { startTestHarness } from "../../support/service.ts";
import { startStubShop } from "../../support/stub-shop.ts";

/* Commands that ask another server, and one that is broken or hostile. */

type Handle = (request: IncomingMessage, response: ServerResponse) => unknown;

/** Starts a peer; `asked` resolves with its first request. */
async function startPeer(handle: Handle) {
  const asked = Promise.withResolvers<void>();
  const server = await listenOnLoopback((request, response) => {
    asked.resolve();
    return handle(request, response);
  });
  onTestFinished(() => server.close());
  return { origin: server.origin, asked: asked.promise };
}

const address = testPayers.empty.address;

const commands: Readonly<Record<string, (origin: string) => readonly string[]>> = {
  why: (origin) => ["why", "--url", origin],
  logs: (origin) => ["logs", "--follow", "--url", origin],
  buy: (origin) => ["buy", `${origin}/report`, "--url", origin],
  pay: (origin) => ["pay", "--url", origin],
  "channels settle": (origin) => ["channels", "settle", address, "--network", "base", "--url", origin],
  "state save": (origin) => ["state", "save", "/dev/null/never", "--url", origin],
};

test.each(Object.entries(commands))(
  "a peer that never answers holds up %s for half a minute",
  async (_, of) => {
    const { origin, asked } = await startPeer(() => {});
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const ended = runHere(of(origin));
    await asked;
    await vi.advanceTimersByTimeAsync(30_000);
    const { code, stderr } = await ended;
    expect({ code, stderr }).toEqual({ code: 3, stderr: expect.stringContaining("hangs or is overloaded") });
    expect(stderr).not.toMatch(/nothing answers/i);
  },
);

test.each(["pay", "channels settle"])("%s tells an answer that broke off from none", async (name) => {
  const { origin } = await startPeer((_request, response) => {
    response.writeHead(200, { "content-length": 1_000 }).write("{");
    setTimeout(() => response.destroy(), 20);
  });
  const { code, stderr } = await runHere(commands[name]?.(origin) ?? []);
  expect({ code, stderr }).toEqual({ code: 3, stderr: expect.stringContaining("broke off") });
});

const description = (origin: string) => {
  const { chainId, caip2, usdc } = networks.base;
  return {
    facilitator: { url: `${origin}/v1` },
    organization: { id: "org_local", apiKey: testKeys.local.apiKey, recipient: address },
    payers: {},
    networks: {
      base: {
        chainId,
        caip2,
        rpcUrl: `${origin}/rpc`,
        facilitatorContract: localContracts.mainnet,
        payTo: localContracts.mainnet,
        asset: { address: usdc.address, name: usdc.name, version: usdc.version, decimals: 6 },
      },
    },
  };
};

const answered = {
  outcome: "valid",
  status: 200,
  reason: null,
  message: null,
  tookMs: 1,
  count: 1,
  at: 1_800_000_000_000,
};
const summary = {
  id: "request-1",
  version: 1,
  firstSeenAt: 1_800_000_000_000,
  lastSeenAt: 1_800_000_000_000,
  network: "base",
  payer: address,
  payerName: null,
  amount: "10000",
  asset: networks.base.usdc.address,
  token: { symbol: "USDC", decimals: 6 },
  x402Version: 2,
  verify: answered,
  settle: null,
  ledger: null,
  transaction: null,
  delivered: null,
};

test.each([
  ["decimals beyond all texts", { token: { symbol: "USDC", decimals: Number.MAX_SAFE_INTEGER } }],
  ["decimals that take minutes to lay out", { token: { symbol: "USDC", decimals: 200_000 } }],
  ["a time that is no date", { verify: { ...answered, at: 1e300 } }],
])("logs shows the payments beside one with %s", async (_, hostile) => {
  const payments = [summary, { ...summary, id: "request-2", ...hostile }];
  const { origin } = await startPeer((_request, response) =>
    response.end(JSON.stringify({ apiVersion: 1, payments })),
  );
  const { code, stdout } = await runHere(["logs", "--url", origin]);
  expect({ code, lines: stdout.trim().split("\n").length }).toEqual({ code: 0, lines: 1 });
});

test("an amount of hundreds of thousands of digits is shown without minutes of layout", async () => {
  const payments = [{ ...summary, amount: "9".repeat(200_000) }];
  const { origin } = await startPeer((_request, response) =>
    response.end(JSON.stringify({ apiVersion: 1, payments })),
  );
  expect((await runHere(["logs", "--url", origin])).code).toBe(0);
});

test("logs prints no more payments than it asked for, and asks a silent peer once why", async () => {
  const refused = { ...summary, verify: { ...answered, outcome: "invalid" } };
  const payments = Array.from({ length: 100_000 }, (_, index) => ({ ...refused, id: `request-${index}` }));
  const text = JSON.stringify({ apiVersion: 1, payments });
  let questions = 0;
  const { origin } = await startPeer((request, response) => {
    if (request.url?.startsWith("/payments?")) return response.end(text);
    questions++;
    return request.socket.destroy();
  });
  const { code, stdout } = await runHere(["logs", "--limit", "5", "--url", origin]);
  expect({ code, lines: stdout.trim().split("\n").length, questions }).toEqual({
    code: 0,
    lines: 5,
    questions: 1,
  });
});

const named = (name: string) => (made: ReturnType<typeof description>) => {
  made.networks.base.asset.name = name;
};

test.each<[string, string[], (made: ReturnType<typeof description>) => void]>([
  ["a token's name of several lines", ["fund", "--amount", "1"], named("USDC\nSettled 0.01 USDC on base.")],
  [
    "decimals beyond all texts",
    ["fund", "--amount", "1"],
    (made) => {
      made.networks.base.asset.decimals = Number.MAX_SAFE_INTEGER;
    },
  ],
  [
    "a chain at no URL",
    ["fund", "--amount", "1"],
    (made) => {
      made.networks.base.rpcUrl = "x";
    },
  ],
])("what describes itself with %s is no harness", async (_, args, change) => {
  const { origin } = await startPeer((request, response) => {
    const made = description(origin);
    change(made);
    response.end(JSON.stringify(request.url === "/harness" ? made : { amount: "1", units: true }));
  });
  const more = ["--network", "base", "--to", address, "--url", origin, "--json"];
  const { code, stdout } = await runHere([...args, ...more]);
  expect({ code, error: JSON.parse(stdout).error?.code }).toEqual({ code: 1, error: "unexpected-answer" });
});

test.each([
  ["advance-time", { network: "base", now: 9_007_199_254_740_991 }],
  ["advance-time", { network: 7 }],
  ["fault list", { faults: null }],
  ["state save", { version: 2 }],
])("%s says that it was answered with something else: %j", async (name, answer) => {
  const { origin } = await startPeer((request, response) =>
    response.end(JSON.stringify(request.url === "/harness" ? description(origin) : answer)),
  );
  const own: Record<string, string[]> = {
    "advance-time": ["--network", "base", "--seconds", "1"],
    "state save": ["/dev/null/never"],
  };
  const { code, stdout } = await runHere([
    ...name.split(" "),
    ...(own[name] ?? []),
    ...["--url", origin, "--json"],
  ]);
  expect({ code, error: JSON.parse(stdout).error?.code }).toEqual({ code: 1, error: "unexpected-answer" });
});

test("an error of a peer cannot look like a line of the command", async () => {
  const error = "it failed\n\u001b[2JSettled 0.01 USDC on base.";
  const { origin } = await startPeer((_request, response) =>
    response.writeHead(500).end(JSON.stringify({ error })),
  );
  const { stderr } = await runHere(["why", "--url", origin]);
  expect(stderr).toContain("it failed");
  expect(stderr).not.toMatch(/^\S*Settled/m);
  expect(stderr).not.toContain("\u001b");
});

test("a channel action that was sent and not answered is undecided, not refused", async () => {
  const { origin } = await startPeer((request, response) =>
    request.method === "GET" ? response.end("{}") : request.socket.destroy(),
  );
  const { code, stdout } = await runHere([...(commands["channels settle"]?.(origin) ?? []), "--json"]);
  expect([code, JSON.parse(stdout)]).toMatchObject([1, { results: [{ result: "undecided" }] }]);
});

const deep = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;

test("an answer too deep to be printed leaves a channel action undecided", async () => {
  const text = `{"success":true,"transaction":"0x${"12".repeat(32)}","extra":${deep(100_000)}}`;
  const { origin } = await startPeer((_request, response) => response.end(text));
  const { code, stdout } = await runHere([...(commands["channels settle"]?.(origin) ?? []), "--json"]);
  expect([code, JSON.parse(stdout)]).toMatchObject([1, { results: [{ result: "undecided" }] }]);
});

test.each([
  ["too deep to be read", `{"x402Version":1,"accepts":[{"extra":${deep(100_000)}}]}`],
  ["of 100,000 offers", `{"x402Version":1,"accepts":[${Array(100_000).fill('{"network":"base"}').join()}]}`],
])("buy says in little time and space what is wrong with a 402 %s", async (_, text) => {
  const { origin } = await startPeer((_request, response) => response.writeHead(402).end(text));
  const { code, stdout, stderr } = await runHere(["buy", `${origin}/report`, "--live", "--dry-run"]);
  expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
  expect(stdout.length).toBeLessThan(2_000_000);
});

test("a client's header cannot keep its payment from being explained, or the session from being saved", async () => {
  const folder = await mkdtemp(join(tmpdir(), "x402-deep-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const shop = await startStubShop();
  onTestFinished(() => shop.close());
  const options = { studio: true, shop: { target: shop.origin, port: 0 } };
  await using harness = await startTestHarness({ networks: ["base"], ...options });
  const header = Buffer.from(`{"x402Version":2,"accepted":${deep(5_500)},"payload":{}}`).toString("base64");
  await fetch(`${harness.description.shop?.url}/report`, { headers: { "PAYMENT-SIGNATURE": header } });
  const at = ["--url", originOf(harness.description), "--json"];
  expect(await runHere(["why", ...at])).toMatchObject({ code: 0, stderr: "" });
  expect(await runHere(["state", "save", join(folder, "saved"), ...at])).toMatchObject({ code: 0 });
});
