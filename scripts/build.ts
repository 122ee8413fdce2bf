import { spawnSync } from "node:child_process";
import { chmodSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildApiReference } from "./build-api-reference.ts";
import {
  fingerprintSources,
  forgetBuild,
  lookAtSources,
  readBuild,
  rememberBuild,
} from "./build-fingerprint.ts";
import { bundleForNode } from "./bundle.ts";
import { replaceFolder } from "./replace-folder.ts";

/*
 * Compiles src/ to dist/, bundles what Node runs, makes the command executable, and builds the studio's page. With
 * `--if-changed`, does nothing if dist/ was built from the same sources.
 */

const root = fileURLToPath(new URL("..", import.meta.url));
const dist = join(root, "dist");

function run(command: string, ...args: readonly string[]): void {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: "inherit" });
  if (status !== 0) throw error ?? new Error(`${command} ended with exit code ${status}`);
}

async function build(made: string): Promise<void> {
  // One checker only: each checks the library types again, which takes longer than all of src.
  run("tsc", "-p", "tsconfig.build.json", "--checkers", "1", "--outDir", made);
  const page = ["-c", "scripts/vite.config.ts", "--outDir", join(made, "studio-page")];
  run("vite", "build", "--logLevel", "warn", ...page);
  await bundleForNode(made);
  await buildApiReference(join(made, "api-reference"));
  for (const name of readdirSync(join(made, "cli"))) {
    // Only types are left, and they belong to no entry point of the package.
    if (name !== "bin.js") rmSync(join(made, "cli", name), { recursive: true });
  }
  chmodSync(join(made, "cli/bin.js"), 0o755);
}

const seen = lookAtSources();
const fingerprint = fingerprintSources();
if (!process.argv.includes("--if-changed") || readBuild() !== fingerprint) {
  forgetBuild();
  try {
    await replaceFolder(dist, build);
    rememberBuild(fingerprint, seen);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
} else {
  // The contents are the same, but the files may have been rewritten.
  rememberBuild(fingerprint, seen);
}
