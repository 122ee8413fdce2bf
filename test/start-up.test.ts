import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";

const src = join(import.meta.dirname, "../src");

/*
 * Most of a start is imports: viem's alone took a quarter of a second of CPU, on the way to a function that a payment
 * which fails needs.
 */
test("a start of up loads these packages and no others", () => {
  const packages = new Set<string>();
  const seen = new Set<string>();
  for (const entry of ["cli/bin.ts", "cli/main.ts", "cli/up/up.ts"]) follow(entry, { packages, seen });
  // What it imports dynamically, it imports at every start.
  follow("harness/run/start-harness.ts", { packages, seen, dynamic: true });
  expect([...packages].sort()).toEqual([
    "@noble/curves/secp256k1",
    "@noble/hashes/sha3",
    "fastify",
    "fastify-plugin",
    "kysely",
    "pino",
    "zod",
  ]);
  expect(seen.size).toBeGreaterThan(150);
});

/* Somebody waits for them, again and again. */
test.each([
  ["pay and fund", "cli/commands/running-up.ts", ["@noble/curves/secp256k1", "@noble/hashes/sha3", "zod"]],
  ["why and logs", "cli/commands/payments.ts", ["@noble/hashes/sha3", "zod"]],
])("a start of %s loads these packages and no others", (_, module, expected) => {
  const packages = new Set<string>();
  const seen = new Set<string>();
  for (const entry of ["cli/bin.ts", "cli/main.ts", module]) follow(entry, { packages, seen });
  expect([...packages].sort()).toEqual(expected);
  expect(seen.size).toBeGreaterThan(50);
});

/** Collects what a file imports at its start, and what those files import; types are no imports. */
function follow(file: string, found: { packages: Set<string>; seen: Set<string>; dynamic?: boolean }): void {
  const { packages, seen, dynamic = false } = found;
  if (seen.has(file) && !dynamic) return;
  seen.add(file);
  const text = readFileSync(join(src, file), "utf8");
  const statements = text.matchAll(
    /^(?:import|export)\s(?!type\s)[^;]*?from\s+"([^"]+)"|^import\s+"([^"]+)"/gms,
  );
  const specifiers = [...statements].map(([, from, alone]) => from ?? alone ?? "");
  if (dynamic) specifiers.push(...[...text.matchAll(/import\("([^"]+)"\)/g)].map(([, name = ""]) => name));
  for (const specifier of specifiers) {
    if (specifier.startsWith(".")) follow(join(dirname(file), specifier), { packages, seen });
    else if (!specifier.startsWith("node:")) packages.add(specifier);
  }
}
