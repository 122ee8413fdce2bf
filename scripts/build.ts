import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, readdirSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { buildApiReference } from "./build-api-reference.ts";
import { bundleCommand } from "./bundle-command.ts";

/** Compiles src/ to dist/, from nothing, bundles the command and makes it executable, and builds the studio's page. */
const root = new URL("../", import.meta.url);
const dist = new URL("dist/", root);
for (const name of existsSync(dist) ? readdirSync(dist) : []) {
  // Replaced as a whole below: tests that run meanwhile read it.
  if (name !== "api-reference") rmSync(new URL(name, dist), { recursive: true });
}
const run = (command: string, args: readonly string[]) =>
  spawnSync(command, args, { cwd: root, stdio: "inherit" }).status;
const page = ["build", "--logLevel", "warn", "-c", "src/studio/page/vite.config.ts"];
const status = run("tsc", ["-p", "tsconfig.build.json"]) || run("vite", page);
if (status === 0) {
  await bundleCommand(fileURLToPath(dist));
  await buildApiReference(fileURLToPath(new URL("api-reference", dist)));
  for (const name of readdirSync(new URL("cli", dist))) {
    // Now in dist/bundle/, and no door of the package.
    if (name !== "bin.js") rmSync(new URL(`cli/${name}`, dist), { recursive: true });
  }
  chmodSync(new URL("cli/bin.js", dist), 0o755);
}
process.exitCode = status ?? 1;
