import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { expect, test } from "vitest";

const src = join(import.meta.dirname, "../src");

/** The rooms that everything may use. Each uses at most those before it. */
const ground = ["errors", "util", "protocol"];

/**
 * What each folder of `src/` may import, itself and the {@link ground} aside. Data flows one way, so no folder can name
 * one that names it; a test below holds that.
 */
const allowed: Readonly<Record<string, readonly string[]>> = {
  protocol: [],
  errors: [],
  util: [],
  contracts: [],
  published: ["contracts"],
  channels: [],
  logging: [],
  "local-server": ["config"],
  config: ["published"],
  metrics: ["channels"],
  tracing: ["channels"],
  database: [],
  rpc: [],
  chain: ["channels", "config", "contracts", "rpc"],
  ledger: ["channels", "database"],
  organizations: ["config", "database"],
  discovery: ["database"],
  relayer: ["chain", "ledger", "logging", "rpc"],
  facilitator: ["chain", "channels", "config", "ledger", "organizations", "relayer", "rpc"],
  http: ["channels", "discovery", "facilitator", "ledger", "logging", "metrics", "organizations"],
  admin: ["capture", "config", "deploy", "explain", "http", "local-server", "rpc", "studio"],
  capture: ["chain", "contracts", "explain", "rpc", "studio"],
  explain: ["chain"],
  studio: ["channels", "explain", "published"],
  deploy: ["chain", "config", "contracts", "rpc"],
  inspection: ["chain", "config", "database", "deploy", "logging", "published", "rpc"],
  "service-health": ["database", "facilitator", "inspection", "logging", "organizations"],
  "service-sources": ["facilitator", "ledger", "metrics"],
  "service-parts": [
    ...[
      "chain",
      "channels",
      "config",
      "database",
      "deploy",
      "http",
      "inspection",
      "ledger",
      "metrics",
      "rpc",
    ],
  ],
  service: [
    ...[
      "chain",
      "config",
      "discovery",
      "facilitator",
      "http",
      "inspection",
      "metrics",
      "organizations",
      "relayer",
    ],
    ...["service-health", "service-parts", "service-sources"],
  ],
  harness: [
    ...[
      "capture",
      "chain",
      "channels",
      "config",
      "contracts",
      "database",
      "deploy",
      "explain",
      "http",
      "ledger",
      "local-server",
      "logging",
      "organizations",
      "published",
      "rpc",
    ],
    "service",
    "service-parts",
    "studio",
    "tracing",
  ],
  pool: ["harness", "local-server", "logging"],
  vitest: ["harness", "pool"],
  fixtures: ["published"],
  "mock-server": ["channels", "config", "fixtures", "http", "local-server", "published", "studio"],
  conformance: ["fixtures", "harness", "published", "rpc"],
  judge: ["harness", "published"],
  cli: [
    ...[
      "admin",
      "capture",
      "chain",
      "config",
      "conformance",
      "database",
      "deploy",
      "explain",
      "fixtures",
      "harness",
      "http",
      "inspection",
      "judge",
    ],
    ...[
      "ledger",
      "logging",
      "metrics",
      "mock-server",
      "organizations",
      "published",
      "relayer",
      "service",
      "studio",
      "tracing",
    ],
  ],
};

type Import = { file: string; from: string; to: string; specifier: string };

const imports = readImports();

test("every folder imports what the table allows, and nothing else", () => {
  const breaches = imports
    .filter(({ from, to }) => from !== to && !ground.includes(to) && !allowed[from]?.includes(to))
    .map(({ file, specifier }) => `${file} imports ${specifier}`);
  expect(breaches).toEqual([]);
});

test("the ground uses nothing above it, and errors stand alone", () => {
  const breaches = imports.filter(
    ({ from, to }) => ground.includes(from) && !ground.slice(0, ground.indexOf(from) + 1).includes(to),
  );
  expect(breaches.map(({ file, specifier }) => `${file} imports ${specifier}`)).toEqual([]);
});

test("the table names every folder, and nothing that is not used", () => {
  const used = Object.fromEntries(
    Object.keys(allowed).map((room) => [
      room,
      [...new Set(imports.filter(({ from, to }) => from === room && to !== room).map(({ to }) => to))]
        .filter((to) => !ground.includes(to))
        .sort(),
    ]),
  );
  expect(used).toEqual(
    Object.fromEntries(Object.entries(allowed).map(([room, to]) => [room, [...to].sort()])),
  );
  expect([...new Set(imports.map(({ from }) => from))].filter((room) => !(room in allowed))).toEqual([]);
});

test("no folder reaches itself through others", () => {
  const reaches = (from: string, to: string, seen = new Set<string>()): boolean =>
    (allowed[from] ?? []).some((next) => {
      if (next === to) return true;
      if (seen.has(next)) return false;
      seen.add(next);
      return reaches(next, to, seen);
    });
  expect(Object.keys(allowed).filter((room) => reaches(room, room))).toEqual([]);
});

test("node:http comes from util/node-http.ts: an import of it loads fetch with every start", () => {
  const imported = /^import (?!type )[^;]*"node:http"|\bimport\("node:http"\)/m;
  expect(readSources().filter(({ text }) => imported.test(text))).toEqual([]);
});

type Source = { file: string; text: string };

/** The files of `src/`, tests left out. */
function readSources(): Source[] {
  return readdirSync(src, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"))
    .map((file) => ({ file, text: readFileSync(join(src, file), "utf8") }));
}

/** Every import of one file of `src/` by another. */
function readImports(): Import[] {
  return readSources().flatMap(({ file, text }) => {
    return [...text.matchAll(/(?:\bfrom|\bimport|\bimport\()\s*"(\.{1,2}\/[^"]+)"/g)].flatMap(
      ([, specifier = ""]) => {
        const target = relative(src, join(src, dirname(file), specifier));
        return [{ file: `src/${file}`, from: roomOf(file), to: roomOf(target), specifier }];
      },
    );
  });
}

/** A folder of `src/`, or a file that stands in it by itself, without its ending. */
function roomOf(path: string): string {
  const [first = ""] = path.split("/");
  return first.replace(/\.ts$/, "");
}
