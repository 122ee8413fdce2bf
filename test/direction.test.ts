import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { expect, test } from "vitest";

const src = join(import.meta.dirname, "../src");

/** The rooms that everything may use. Each uses at most those before it. */
const ground = ["util", "protocol", "methods"];

/**
 * The imports that each room of `src/` may have, itself and the {@link ground} aside. Data flows one way, so no room can name one that
 * names it; a test below holds that.
 */
const allowed: Readonly<Record<string, readonly string[]>> = {
  util: [],
  protocol: [],
  methods: [],
  contracts: [],
  payer: ["contracts"],
  config: ["payer"],
  "observe/channels": [],
  chain: ["config", "contracts", "observe/channels"],
  "methods/on-chain": ["chain", "config", "contracts"],
  ledger: ["observe/channels"],
  observe: ["chain", "methods/on-chain", "observe/channels", "payer"],
  service: ["chain", "config", "ledger", "methods/on-chain", "observe", "observe/channels", "payer"],
  harness: [
    ...["chain", "config", "contracts", "ledger", "methods/on-chain", "observe", "observe/channels"],
    ...["payer", "service"],
  ],
  fixtures: ["payer"],
  "fixtures/mock-server": [
    ...["config", "fixtures", "judge", "observe", "observe/channels", "payer", "service"],
  ],
  judge: ["chain", "fixtures", "harness", "methods/on-chain", "observe", "payer"],
  cli: [
    ...["chain", "config", "fixtures", "fixtures/mock-server", "harness", "judge", "ledger"],
    ...["methods/on-chain", "observe", "payer", "service"],
  ],
};

/**
 * Parts of a room that stand apart: what publishes may name the channels, what runs in a browser no server, and how money
 * moves by a chain (`methods/on-chain`, and the folder of that name of each way to pay) is more than what a payer signs.
 */
const apart = ["observe/channels", "fixtures/mock-server"];

type Import = { file: string; from: string; to: string; specifier: string };

const imports = readImports();

test("every room imports what the table allows, and nothing else", () => {
  const breaches = imports
    .filter(({ from, to }) => from !== to && !ground.includes(to) && !allowed[from]?.includes(to))
    .map(({ file, specifier }) => `${file} imports ${specifier}`);
  expect(breaches).toEqual([]);
});

test("the ground uses nothing above it", () => {
  const breaches = imports.filter(
    ({ from, to }) => ground.includes(from) && !ground.slice(0, ground.indexOf(from) + 1).includes(to),
  );
  expect(breaches.map(({ file, specifier }) => `${file} imports ${specifier}`)).toEqual([]);
});

test("the table names every room, and nothing that is not used", () => {
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

test("no room reaches itself through others", () => {
  const reaches = (from: string, to: string, seen = new Set<string>()): boolean =>
    (allowed[from] ?? []).some((next) => {
      if (next === to) return true;
      if (seen.has(next)) return false;
      seen.add(next);
      return reaches(next, to, seen);
    });
  expect(Object.keys(allowed).filter((room) => reaches(room, room))).toEqual([]);
});

test("no way to pay imports from the folder of another", () => {
  const wayOf = (path: string) => /^src\/methods\/(?!on-chain\/)([^/]+)\//.exec(path)?.[1];
  const breaches = imports.filter(({ file, specifier }) => {
    const [from, to] = [wayOf(file), wayOf(join(dirname(file), specifier))];
    return from !== undefined && to !== undefined && from !== to;
  });
  expect(breaches.map(({ file, specifier }) => `${file} imports ${specifier}`)).toEqual([]);
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

/** A folder of `src/`, or a part of one that stands apart. */
function roomOf(path: string): string {
  if (path.startsWith("methods/") && path.includes("/on-chain/")) return "methods/on-chain";
  const [first = ""] = path.split("/");
  return apart.find((part) => path.startsWith(`${part}/`)) ?? first;
}
