import { accessSync, constants } from "node:fs";
import { createRequire } from "node:module";
import { KitError } from "../../util/errors.ts";

// Node's names of platform and architecture → the suffix of the package that holds the binary for them.
const platformPackages: Readonly<Record<string, string>> = {
  "darwin-arm64": "darwin-arm64",
  "darwin-x64": "darwin-amd64",
  "linux-arm64": "linux-arm64",
  "linux-x64": "linux-amd64",
  "win32-x64": "win32-amd64",
};

/**
 * The path of the native anvil binary for this platform. The `anvil` command of `@foundry-rs/anvil` is a wrapper
 * that keeps a Node process per node; this is the binary behind it.
 *
 * @throws {KitError} when there is no binary for the platform, or it is not installed
 */
export function anvilBinary(
  platform: NodeJS.Platform = process.platform,
  architecture: NodeJS.Architecture = process.arch,
): string {
  const suffix = platformPackages[`${platform}-${architecture}`];
  if (suffix === undefined) {
    throw new KitError(`There is no anvil binary for ${platform} on ${architecture}`, {
      hints: [`The local chains run on ${Object.keys(platformPackages).join(", ")}.`],
    });
  }
  const name = `@foundry-rs/anvil-${suffix}`;
  try {
    // From the package that depends on it: under pnpm and Yarn ours cannot see its dependencies.
    const parent = createRequire(createRequire(import.meta.url).resolve("@foundry-rs/anvil/package.json"));
    return executable(parent.resolve(`${name}/bin/anvil${platform === "win32" ? ".exe" : ""}`));
  } catch (cause) {
    if (cause instanceof KitError) throw cause;
    throw new KitError("The anvil binary is not installed", {
      cause,
      hints: [
        `It comes with the optional dependency ${name}.`,
        "Install again without --omit=optional (or --no-optional): npm install @foundry-rs/anvil",
      ],
    });
  }
}

/** The path itself, when it is a file that this process may execute. */
export function executable(path: string): string {
  try {
    accessSync(path, constants.X_OK);
    return path;
  } catch (cause) {
    throw new KitError(`The anvil binary at ${path} is missing or cannot be executed`, {
      cause,
      hints: ["Install it again: npm install @foundry-rs/anvil", `Or allow its execution: chmod +x ${path}`],
    });
  }
}
