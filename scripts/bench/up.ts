import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type HarnessDescription, harnessDescriptionSchema } from "../../src/harness/control/description.ts";

/** A running `x402-kit up` in a process of its own. */
export type Up = {
  description: HarnessDescription;
  /** CPU milliseconds the process has used so far, from /proc; undefined on systems without it. */
  cpuMs(): number | undefined;
  stop(): Promise<void>;
};

/** Starts `up` on any free port, and resolves when it has printed what it is made of. */
export async function startUp(options: readonly string[]): Promise<Up> {
  const bin = fileURLToPath(new URL("../../src/cli/bin.ts", import.meta.url));
  const child = spawn(process.execPath, [bin, "up", "--port", "0", ...options], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  for await (const chunk of child.stdout) {
    text += String(chunk);
    if (text.includes("\n")) break;
  }
  return {
    description: harnessDescriptionSchema.parse(JSON.parse(text)),
    cpuMs() {
      try {
        const fields = readFileSync(`/proc/${child.pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
        // utime and stime, in ticks of 10 ms.
        return (Number(fields[11]) + Number(fields[12])) * 10;
      } catch {
        return undefined;
      }
    },
    async stop() {
      child.kill("SIGINT");
      if (child.exitCode === null) await once(child, "exit");
    },
  };
}
