import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { freePort } from "../../src/judge/scene/run-command.ts";
import type { Variables } from "../../test/support/serve/command.ts";

const bin = fileURLToPath(new URL("../../dist/cli/bin.js", import.meta.url));

/**
 * Starts the built `serve` as a process, for one network and with a SQLite file; resolves when it accepts payments. It
 * logs to a file, as under a supervisor.
 */
export async function startServe(
  variables: Variables,
): Promise<{ url: string; pid: number; stop(): Promise<void> }> {
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), "x402-kit-bench-"));
  const log = openSync(join(folder, "log"), "w");
  const child = spawn(process.execPath, [bin, "serve"], {
    cwd: folder,
    env: { PATH: process.env.PATH, ...variables, PORT: String(port) },
    stdio: ["ignore", "ignore", log],
  });
  closeSync(log);
  const origin = `http://127.0.0.1:${port}`;
  while (
    !(await fetch(`${origin}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    ))
  ) {
    if (child.exitCode !== null) throw new Error(readFileSync(join(folder, "log"), "utf8"));
    await sleep(20);
  }
  return {
    url: `${origin}/v1`,
    pid: child.pid ?? 0,
    async stop() {
      const exited = once(child, "exit");
      child.kill("SIGTERM");
      await exited;
      rmSync(folder, { recursive: true });
    },
  };
}
