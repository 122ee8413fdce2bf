import { spawnSync } from "node:child_process";
import { chmodSync, rmSync } from "node:fs";

/** Compiles src/ to dist/, from nothing, and makes the command executable. */
const root = new URL("../", import.meta.url);
rmSync(new URL("dist", root), { recursive: true, force: true });
const { status } = spawnSync("tsc", ["-p", "tsconfig.build.json"], { cwd: root, stdio: "inherit" });
if (status === 0) chmodSync(new URL("dist/cli/bin.js", root), 0o755);
process.exitCode = status ?? 1;
