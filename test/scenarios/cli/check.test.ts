import { mkdtemp, readFile, rm } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { domainSeparator } from "../../../src/methods/eip712.ts";
import { localContracts } from "../../../src/payer/local-chains.ts";
import { networks } from "../../../src/protocol/networks.ts";
import { encodeHeader } from "../../../src/protocol/payment-headers.ts";
import { listenOnLoopback } from "../../support/loopback-server.ts";
import { runHere } from "../../support/run-here.ts";
import { answering, type ReceivedCall, startStubNode } from "../../support/stub-node.ts";
import { type StubShop, startStubShop } from "../../support/stub-shop.ts";

/* `x402-kit check`: each rule has a shop that no other rule finds anything wrong with. */

type Found = { url: string; name: string; level: string; seen: string[] };

async function check(url: string, ...args: string[]) {
  const { code, stdout, stderr } = await runHere(["check", url, ...args, "--json"]);
  if (stdout === "") throw new Error(stderr);
  const { findings }: { findings: Found[] } = JSON.parse(stdout);
  const bad = findings.filter(({ level }) => level === "wrong" || level === "differs");
  return { code, findings, bad: bad.map(({ name }) => name), levels: bad.map(({ level }) => level) };
}

const { usdc } = networks.base;
const wallet = "0x857b06519E91e3A54538791bDbb0E22373e36b66";
const domain = domainSeparator(usdc, 8_453);

/** A node of base that has USDC. */
const answers: Record<string, (params: unknown[]) => unknown> = {
  eth_chainId: () => "0x2105",
  eth_getCode: ([address]) => (address === usdc.address ? "0x60" : "0x"),
  eth_call: () => domain,
};

const bazaar = {
  info: { input: { type: "http", method: "GET" } },
  schema: { type: "object", properties: { input: { type: "object" } } },
};

type Row = StubShop & {
  args?: string[];
  /** How the node differs that is asked; none is by default. */
  node?: typeof answers;
  /** The kinds of the facilitator that is asked, and its catalogue; none is by default. */
  kinds?: object[];
  listed?: object[];
  /** The host that the shop is requested at. */
  host?: string;
  isMinor?: boolean;
};

const kind = { x402Version: 2, scheme: "exact", network: "eip155:8453" };
type Instead = NonNullable<StubShop["instead"]>;
const serve: Instead = (_, response) => response.end("the goods");
const serveIf =
  (isServed: (request: IncomingMessage) => boolean): Instead =>
  (request, response) =>
    isServed(request) && response.end("the goods");

const rows: Record<string, Row> = {
  "asks-for-payment": { instead: serve },
  "not-json": { encode: () => "%%%" },
  "not-encoded": { encode: JSON.stringify },
  "encoded-twice": { encode: (value) => Buffer.from(encodeHeader(value)).toString("base64") },
  "odd-base64": {
    encode: (value) => Buffer.from(JSON.stringify({ ...value, error: "ÿ?ÿ>" })).toString("base64url"),
    isMinor: true,
  },
  "no-challenge": { encode: () => undefined },
  "misplaced-challenge": { isInBody: true },
  "resource-differs": { challenge: { resource: { url: "http://internal/report" } }, isMinor: true },
  "unknown-scheme": { offer: { scheme: "deferred" }, isMinor: true },
  "unknown-network": { x402Version: 1, offer: { network: "bsae" } },
  "wrong-version": { offer: { network: "base" } },
  "wrong-asset": { offer: { asset: networks.polygon.usdc.address } },
  "pay-to-not-accepted": { offer: { payTo: wallet }, args: ["--pay-to", "contract"] },
  "pay-to-nobody": { offer: { payTo: `0x${"0".repeat(40)}` } },
  "other-tier": { offer: { payTo: localContracts.testnet } },
  "bad-checksum": { offer: { payTo: wallet.replace("E91e", "e91E") }, isMinor: true },
  "amount-in-dollars": { offer: { amount: "$0.01" } },
  "amount-zero": { offer: { amount: "0" } },
  "amount-off-by-decimals": { offer: { amount: `1${"0".repeat(16)}` } },
  "timeout-out-of-range": { offer: { maxTimeoutSeconds: 1 } },
  "extra-differs": { extra: { name: "USDC" } },
  "missing-member": { offer: { payTo: undefined } },
  "clear-text": { host: "0.0.0.0", isMinor: true },
  "cors-exposed": {
    cors: { "Access-Control-Allow-Origin": "*", "Access-Control-Allow-Headers": "*" },
    isMinor: true,
  },
  "cors-preflight": {
    instead: ({ method }, response) => method === "OPTIONS" && response.writeHead(402).end(),
    isMinor: true,
  },
  "malformed-payment": {
    instead: ({ headers }, response) =>
      headers["payment-signature"] === "%%%" && response.writeHead(500).end(),
    isMinor: true,
  },
  "free-with-query": { instead: serveIf(({ url }) => url === "/report?x=1") },
  "free-with-method": { instead: serveIf(({ method, url }) => method === "POST" && url === "/report") },
  "free-with-head": { instead: serveIf(({ method, url }) => method === "HEAD" && url === "/report") },
  "free-with-spelling": { instead: serveIf(({ url }) => url === "/report/") },
  supported: { kinds: [{ ...kind, network: "eip155:137" }] },
  "upto-extra": {
    offer: { scheme: "upto" },
    extra: { facilitatorAddress: wallet },
    kinds: [{ ...kind, scheme: "upto", extra: { facilitatorAddress: localContracts.mainnet } }],
  },
  "discovery-entry": { challenge: { extensions: { bazaar: { info: {} } } }, isMinor: true },
  "discovery-listed": { challenge: { extensions: { bazaar } }, kinds: [kind], listed: [], isMinor: true },
  "token-code": { node: { ...answers, eth_getCode: () => "0x", eth_call: () => "0x" } },
  "token-domain": { node: { ...answers, eth_call: () => `0x${"12".repeat(32)}` } },
  "pay-to-code": { offer: { payTo: wallet }, node: { ...answers, eth_getCode: () => "0x60" }, isMinor: true },
};

/** Opens the shop of a row; gives the arguments of the command that checks it. */
async function openRow({ args = [], node, kinds, listed, host = "127.0.0.1", ...shop }: Row) {
  const { url, close } = await startStubShop(shop);
  onTestFinished(close);
  const more = [...args];
  if (node !== undefined) {
    const stub = await startStubNode(answering(({ method, params }: ReceivedCall) => node[method]?.(params)));
    onTestFinished(stub.stop);
    more.push("--rpc-url", stub.url);
  }
  if (kinds !== undefined) {
    const facilitator = await listenOnLoopback((request, response) => {
      if (request.url === "/supported") return response.end(JSON.stringify({ kinds }));
      if (listed !== undefined) return response.end(JSON.stringify({ items: listed }));
      return response.writeHead(404).end();
    });
    onTestFinished(facilitator.close);
    more.push("--facilitator", facilitator.origin);
  }
  return [url.replace("127.0.0.1", host), ...more] as const;
}

const seen = new Set<string>();
let all: string[] = [];

test.each(Object.entries(rows))("%s is found in the shop that breaks this rule alone", async (rule, row) => {
  const { code, bad, levels, findings } = await check(...(await openRow(row)));
  expect(bad).toEqual([rule]);
  const isMinor = row.isMinor === true;
  expect([levels, code]).toEqual([[isMinor ? "differs" : "wrong"], isMinor ? 0 : 1]);
  seen.add(rule);
  all = findings.map(({ name }) => name);
});

afterAll(() => {
  // Only of a whole run.
  if (seen.size === Object.keys(rows).length) expect(all.sort()).toEqual([...seen].sort());
});

test.each<[string, StubShop]>([
  ["version 2", {}],
  ["version 1", { x402Version: 1 }],
  [
    "a network that is not known here",
    { challenge: { accepts: [{ scheme: "exact", network: "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp" }] } },
  ],
])("nothing is wrong with a good shop of %s", async (_, shop) => {
  const { code, bad } = await check(...(await openRow(shop)), "--strict");
  expect([bad, code]).toEqual([[], 0]);
});

test("with --strict, what is only worth a change is exit code 1", async () => {
  const { code, bad } = await check(...(await openRow({ offer: { scheme: "deferred" } })), "--strict");
  expect([bad, code]).toEqual([["unknown-scheme"], 1]);
});

test("a shop on another machine gets no request that could change something", async () => {
  const methods = new Set<string | undefined>();
  await check(...(await openRow({ host: "0.0.0.0", instead: ({ method }) => void methods.add(method) })));
  expect([...methods].sort()).toEqual(["GET", "HEAD", "OPTIONS"]);
});

test("several shops are one report, as text and as a page to share", async () => {
  const folder = await mkdtemp(join(tmpdir(), "x402-kit-check-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const [good] = await openRow({});
  const [bad] = await openRow({ offer: { amount: "0" } });
  const { code, stdout } = await runHere(["check", good, bad, "--html", join(folder, "report.html")]);
  expect(code).toBe(1);
  expect(stdout).toMatch(/PAYMENT-REQUIRED\.accepts\[0\]\.amount; is "0"; expected more than\s+nothing/);
  const page = await readFile(join(folder, "report.html"), "utf8");
  for (const url of [good, bad]) expect(page).toContain(`<h2>${url}</h2>`);
});

test("the exit code says that nothing listens, or that the command line is wrong", async () => {
  const { url, close } = await startStubShop();
  await close();
  const { code, findings } = await check(url);
  expect([code, findings[0]?.level]).toEqual([3, "not_judged"]);
  expect((await runHere(["check", "shop"])).code).toBe(2);
  expect((await runHere(["check", url, "--facilitator", url])).code).toBe(3);
});
