import { spawnSync } from "node:child_process";
import { chmodSync, rmSync } from "node:fs";

/** Compiles src/ to dist/, from nothing, makes the command executable, and builds the studio's page. */
const root = new URL("../", import.meta.url);
rmSync(new URL("dist", root), { recursive: true, force: true });
const run = (command: string, args: readonly string[]) =>
  spawnSync(command, args, { cwd: root, stdio: "inherit" }).status;
const page = ["build", "--logLevel", "warn", "-c", "src/studio/page/vite.config.ts"];
const status = run("tsc", ["-p", "tsconfig.build.json"]) || run("vite", page);
if (status === 0) chmodSync(new URL("dist/cli/bin.js", root), 0o755);
process.exitCode = status ?? 1;
