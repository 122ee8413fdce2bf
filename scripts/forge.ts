/**
 * Runs Foundry's `forge` and keeps its exit code: `node scripts/forge.ts test`. The command that `@foundry-rs/forge`
 * installs is a wrapper around the platform's binary that always exits with 0, so failing tests would pass.
 */
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

function forgeBinary(): string {
  const suffix = `${process.platform}-${process.arch === "x64" ? "amd64" : process.arch}`;
  const executable = process.platform === "win32" ? "forge.exe" : "forge";
  const wrapper = createRequire(import.meta.url).resolve("@foundry-rs/forge/package.json");
  return createRequire(wrapper).resolve(`@foundry-rs/forge-${suffix}/bin/${executable}`);
}

/** Runs `forge` and returns its exit code; its errors are shown. */
export function runForge(
  args: readonly string[],
  { stdout = "inherit", env = {} }: { stdout?: "inherit" | "ignore"; env?: Record<string, string> } = {},
): number {
  const { status, error } = spawnSync(forgeBinary(), args, {
    cwd: root,
    // scripts/solc finds its Node on PATH.
    env: {
      ...process.env,
      ...env,
      PATH: `${join(root, "node_modules/.bin")}${delimiter}${process.env.PATH}`,
    },
    stdio: ["inherit", stdout, "inherit"],
  });
  if (error !== undefined) throw error;
  return status ?? 1;
}

if (import.meta.main) process.exitCode = runForge(process.argv.slice(2));
