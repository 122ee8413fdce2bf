import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Watchdog } from "../../../src/util/watchdog.ts";
import { instanceHeader, startBalancer } from "../balancer.ts";
import { repository } from "../cli.ts";
import { findFreePort } from "../postgres.ts";
import { findProgram } from "./find-program.ts";
import { startProgram } from "./programs.ts";

/** The proxy in front of the instances, which callers use. */
export type Front = { origin: string; program: string; stop(): Promise<void> };

/**
 * Starts HAProxy with the configuration in production/haproxy.cfg, plus a header that names the instance in each
 * response. Without `installed`, or if the machine has no HAProxy, starts the tests' own balancer.
 *
 * @param ports the ports of the instances
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
  const setUp = await readFile(join(repository, "production/haproxy.cfg"), "utf8");
  await writeFile(
    settings,
    setUp
      .replace(/bind .*/, `bind 127.0.0.1:${port}`)
      .replace(
        /(?: {2}server .*\n)+/,
        `  http-response set-header ${instanceHeader} %s\n${servers.join("\n")}\n`,
      ),
  );
  const { stop } = await startProgram({ file, args: ["-q", "-db", "-f", settings], port, watchdog });
  return { origin: `http://127.0.0.1:${port}`, program: `HAProxy (${file})`, stop };
}
