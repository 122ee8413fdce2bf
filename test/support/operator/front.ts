import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Watchdog } from "../../../src/util/watchdog.ts";
import { instanceHeader, startBalancer } from "../balancer.ts";
import { findFreePort } from "../postgres.ts";
import { findProgram } from "./find-program.ts";
import { startProgram } from "./programs.ts";

/** What callers reach, in front of the instances. */
export type Front = { origin: string; program: string; stop(): Promise<void> };

/**
 * Starts HAProxy as docs/guides/operations.md sets it up, which also names the instance in each answer; without `installed`, or where the machine has none, the balancer
 * of the tests.
 *
 * @param ports of the instances
 */
export async function startFront(
  folder: string,
  watchdog: Watchdog,
  { installed, ports }: { installed: boolean; ports: readonly number[] },
): Promise<Front> {
  const file = installed ? findProgram("haproxy") : undefined;
  if (file === undefined) {
    const { origin, close } = await startBalancer(() => ports.map((port) => `http://127.0.0.1:${port}`));
    return { origin, program: "the balancer of the tests in the place of HAProxy", stop: close };
  }
  const port = await findFreePort();
  const settings = join(folder, "haproxy.cfg");
  const servers = ports.map(
    (own, index) => `  server instance-${index + 1} 127.0.0.1:${own} check inter 500ms`,
  );
  await writeFile(
    settings,
    `defaults
  mode http
  timeout connect 5s
  timeout client  100s
  timeout server  100s
  timeout http-request 10s
  timeout http-keep-alive 60s
  option forwardfor
frontend public
  bind 127.0.0.1:${port}
  default_backend x402
backend x402
  option httpchk GET /readyz
  retries 0
  http-response set-header ${instanceHeader} %s
${servers.join("\n")}
`,
  );
  const { stop } = await startProgram({ file, args: ["-q", "-db", "-f", settings], port, watchdog });
  return { origin: `http://127.0.0.1:${port}`, program: `HAProxy (${file})`, stop };
}
