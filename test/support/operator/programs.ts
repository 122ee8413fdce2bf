import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Watchdog } from "../../../src/util/watchdog.ts";

/** How long a program may take until it accepts connections, in milliseconds. */
const startMs = 20_000;

/** A running server on this machine. */
export type Program = { stop(): Promise<void> };

/** Starts a server; resolves when it accepts connections. It ends with this process at the latest. */
export async function startProgram(
  { file, args, port, watchdog }: { file: string; args: readonly string[]; port: number; watchdog: Watchdog },
  user?: { uid: number; gid: number },
): Promise<Program> {
  const ids = user === undefined ? {} : { uid: user.uid, gid: user.gid };
  const child = spawn(file, args, { ...ids, cwd: "/", stdio: ["ignore", "ignore", "pipe"] });
  let output = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    output = (output + text).slice(-2_000);
  });
  const ended = once(child, "close");
  const { pid } = child;
  if (pid === undefined) throw new Error(`${file} could not be started`);
  watchdog.guard(pid);
  const giveUpAt = performance.now() + startMs;
  while (!(await accepts(port))) {
    if (hasEnded(child) || performance.now() > giveUpAt) {
      child.kill("SIGKILL");
      throw new Error(`${file} does not accept connections: ${output}`);
    }
    await sleep(20);
  }
  return {
    async stop() {
      child.kill("SIGKILL");
      await ended;
      watchdog.release(pid);
    },
  };
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
