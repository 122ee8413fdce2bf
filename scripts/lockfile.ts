import { z } from "zod";

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

/** Where a package may be said to come from; other registries are private. */
const publicHosts: readonly string[] = ["registry.npmjs.org"];

/**
 * Entries that have no integrity: binaries for other platforms, which the registry did not have when the lockfile was
 * written, so that no integrity could be read. npm takes them as the registry gives them; on the platforms that the
 * tests run on (linux-x64) nothing of this list is installed. An entry that has got its integrity leaves the list.
 */
export const withoutIntegrity: Readonly<Record<string, readonly string[]>> = {
  "@biomejs/cli-*@2.6.8": [
    ...["android-arm64", "android-x64", "darwin-arm64", "darwin-x64"],
    ...["linux-arm64-musl", "linux-x64-musl", "win32-arm64", "win32-x64"],
  ],
  "@foundry-rs/anvil-*@1.7.1": ["darwin-amd64", "darwin-arm64", "linux-arm64", "win32-amd64"],
  "@foundry-rs/forge-*@1.7.1": ["darwin-amd64", "linux-arm64"],
  "@oxc-parser/binding-*@0.156.0": [
    ...["android-arm-eabi", "android-arm64", "darwin-arm64", "darwin-x64", "freebsd-x64"],
    ...["linux-arm-gnueabihf", "linux-arm-musleabihf", "linux-ppc64-gnu", "linux-riscv64-gnu"],
    ...["linux-riscv64-musl", "linux-s390x-gnu", "openharmony-arm64"],
    ...["win32-arm64-msvc", "win32-ia32-msvc", "win32-x64-msvc"],
  ],
};

/** What is wrong with a package-lock.json, one line each: what is not pinned by its bytes, or names a private host. */
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
    const name = `${path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length)}@${version}`;
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
