import { createHash, createPublicKey, verify } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";

/*
 * `node scripts/lockfile.ts` checks that the lockfile pins every package by its hash, and names no private registry.
 * With `--complete` it adds missing hashes from the public registry, and fails if one cannot be confirmed.
 */

const lockfile = z.object({
  packages: z.record(
    z.string(),
    z.object({
      version: z.string().optional(),
      integrity: z.string().optional(),
      resolved: z.string().optional(),
      link: z.boolean().optional(),
    }),
  ),
});

/** The registries that packages may come from; all others are private. */
const publicHosts: readonly string[] = ["registry.npmjs.org"];

/**
 * Entries without an integrity: binaries for other platforms that the registry did not have when the lockfile was
 * written. npm installs them unchecked; on the platform that the tests run on (linux-x64) none of them is installed.
 * Each release runs `node scripts/lockfile.ts --complete`, which adds what is missing; remove an entry here once it has
 * its integrity.
 */
export const withoutIntegrity: Readonly<Record<string, readonly string[]>> = {
  "@biomejs/cli-*@2.6.8": [
    "android-arm64",
    "android-x64",
    "darwin-arm64",
    "darwin-x64",
    "linux-arm64-musl",
    "linux-x64-musl",
    "win32-arm64",
    "win32-x64",
  ],
  "@foundry-rs/anvil-*@1.7.1": ["darwin-amd64", "darwin-arm64", "linux-arm64", "win32-amd64"],
  "@foundry-rs/forge-*@1.7.1": ["darwin-amd64", "linux-arm64"],
  "@oxc-parser/binding-*@0.156.0": [
    "android-arm-eabi",
    "android-arm64",
    "darwin-arm64",
    "darwin-x64",
    "freebsd-x64",
    "linux-arm-gnueabihf",
    "linux-arm-musleabihf",
    "linux-ppc64-gnu",
    "linux-riscv64-gnu",
    "linux-riscv64-musl",
    "linux-s390x-gnu",
    "openharmony-arm64",
    "win32-arm64-msvc",
    "win32-ia32-msvc",
    "win32-x64-msvc",
  ],
};

/** The problems of a package-lock.json, one per line: packages not pinned by their bytes, or from a private host. */
export function findLockProblems(
  text: string,
  excused: Readonly<Record<string, readonly string[]>> = withoutIntegrity,
): readonly string[] {
  const { packages } = lockfile.parse(JSON.parse(text));
  const known = new Set(
    Object.entries(excused).flatMap(([pattern, parts]) => parts.map((part) => pattern.replace("*", part))),
  );
  const problems: string[] = [];
  for (const [path, { version, integrity, resolved, link }] of Object.entries(packages)) {
    if (path === "" || link === true) continue;
    const name = `${nameOf(path)}@${version}`;
    const isExcused = known.delete(name);
    if (integrity === undefined && !isExcused) {
      problems.push(
        `${name} has no integrity: what npm installs for it is not checked. Install it again with npm, so that it gets one`,
      );
    }
    if (integrity !== undefined && isExcused) {
      problems.push(`${name} has its integrity: take it off the list in scripts/lockfile.ts`);
    }
    if (resolved !== undefined && !publicHosts.includes(new URL(resolved).host)) {
      problems.push(
        `${name} comes from ${new URL(resolved).host}, which others cannot reach: set npm's omit-lockfile-registry-resolved, and install again`,
      );
    }
  }
  return [
    ...problems,
    ...[...known].map(
      (name) => `${name} is not in the lockfile: take it off the list in scripts/lockfile.ts`,
    ),
  ];
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
}

/** The time limit for a request to the registry, in milliseconds; a binary has some 20 MB. */
const timeoutMs = 120_000;

const published = z.object({
  dist: z.object({
    integrity: z.string().regex(/^sha512-[A-Za-z0-9+/]{86}==$/),
    tarball: z.url(),
    signatures: z.array(z.object({ keyid: z.string(), sig: z.string() })),
  }),
});
const registryKeys = z.object({ keys: z.array(z.object({ keyid: z.string(), key: z.string() })) });

/**
 * Adds the integrity to each entry of a package-lock.json that lacks it. The registry must have signed it for that
 * package and version, as `npm audit signatures` checks, and must serve a package with that hash.
 *
 * @throws Error that names each package for which this fails; nothing is added then
 */
export async function completeLockfile(
  text: string,
  registry = "https://registry.npmjs.org",
): Promise<{ text: string; added: readonly string[] }> {
  const lock = z.looseObject({ packages: z.record(z.string(), z.looseObject({})) }).parse(JSON.parse(text));
  const incomplete = Object.entries(lockfile.parse(lock).packages).filter(
    ([path, { integrity, link }]) => path !== "" && link !== true && integrity === undefined,
  );
  if (incomplete.length === 0) return { text, added: [] };
  const { keys } = registryKeys.parse(await (await get(`${registry}/-/npm/v1/keys`)).json());
  const failures: string[] = [];
  const added: string[] = [];
  // One at a time: together they are several hundred megabytes.
  for (const [path, { version = "" }] of incomplete) {
    const name = nameOf(path);
    try {
      const integrity = await readIntegrity({ name, version, registry, keys });
      Object.assign(lock.packages[path] ?? {}, { integrity });
      added.push(`${name}@${version}`);
    } catch (error) {
      failures.push(`${name}@${version}: ${error instanceof Error ? error.message : error}`);
    }
  }
  if (failures.length > 0) {
    throw new Error(["The integrity of these packages could not be confirmed:", ...failures].join("\n  "));
  }
  return { text: `${JSON.stringify(lock, null, 2)}\n`, added };
}

async function readIntegrity({
  name,
  version,
  registry,
  keys,
}: {
  name: string;
  version: string;
  registry: string;
  keys: z.infer<typeof registryKeys>["keys"];
}): Promise<string> {
  const { dist } = published.parse(await (await get(`${registry}/${name}/${version}`)).json());
  const signed = Buffer.from(`${name}@${version}:${dist.integrity}`);
  const isSigned = dist.signatures.some(({ keyid, sig }) => {
    const found = keys.find((key) => key.keyid === keyid);
    if (found === undefined) return false;
    const key = createPublicKey({ key: Buffer.from(found.key, "base64"), format: "der", type: "spki" });
    return verify("sha256", signed, key, Buffer.from(sig, "base64"));
  });
  if (!isSigned) throw new Error("the registry has not signed its integrity");
  if (new URL(dist.tarball).origin !== new URL(registry).origin) {
    throw new Error(`it would be loaded from ${new URL(dist.tarball).origin}`);
  }
  const hash = createHash("sha512").update(await (await get(dist.tarball)).bytes());
  if (`sha512-${hash.digest("base64")}` !== dist.integrity) {
    throw new Error("the registry serves other bytes than it has signed");
  }
  return dist.integrity;
}

async function get(url: string): Promise<Response> {
  const response = await fetch(url, { signal: AbortSignal.timeout(timeoutMs), redirect: "error" });
  if (!response.ok) throw new Error(`${new URL(url).pathname} answered ${response.status}`);
  return response;
}

async function main(): Promise<void> {
  const file = join(import.meta.dirname, "../package-lock.json");
  if (!process.argv.includes("--complete")) {
    const problems = findLockProblems(readFileSync(file, "utf8"));
    if (problems.length > 0) throw new Error(problems.join("\n"));
    return;
  }
  const { text, added } = await completeLockfile(readFileSync(file, "utf8"));
  if (added.length === 0) return;
  writeFileSync(file, text);
  console.log(`These have their integrity now:\n${added.join("\n")}`);
  console.log("Commit package-lock.json, and take them off the list in scripts/lockfile.ts");
}

if (import.meta.main) {
  await main().catch(({ message }: Error) => {
    console.error(message);
    process.exitCode = 1;
  });
}
