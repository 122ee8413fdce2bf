import { setTimeout as sleep } from "node:timers/promises";
import { requestJson } from "../../../src/util/http-client.ts";
import type { Watchdog } from "../../../src/util/watchdog.ts";
import { type RunningCommand, startCommand, type Variables } from "../serve/command.ts";
import type { Kill } from "./judge-payments.ts";

/** How long an instance may take to become ready, in milliseconds. */
const readyMs = 60_000;

/** Several `x402-kit serve`, each on its own port. */
export type Instances = {
  readonly count: number;
  /** Ends an instance: as an operator does, which lets it finish its work, or without warning. */
  end(index: number, signal: "SIGTERM" | "SIGKILL"): Promise<void>;
  /** Starts an instance that has ended. Resolves when it is ready. */
  start(index: number): Promise<void>;
  /** Freezes an instance, with all its connections open, until the returned function is called. */
  freeze(index: number): () => void;
  /** Resolves when all are ready. */
  allReady(): Promise<void>;
  /** Every end without warning so far. */
  readonly kills: readonly Kill[];
  /** The last output of instances that ended by themselves. */
  readonly deaths: readonly string[];
  stop(): Promise<void>;
};

/** @param variables the variables of each instance, including its `PORT` */
export async function startInstances(
  variables: readonly Variables[],
  watchdog: Watchdog,
): Promise<Instances> {
  const running: (RunningCommand | undefined)[] = variables.map(() => undefined);
  const deaths: string[] = [];
  const kills: Kill[] = [];

  async function ready(index: number): Promise<void> {
    const giveUpAt = performance.now() + readyMs;
    for (;;) {
      const url = `http://127.0.0.1:${variables[index]?.PORT}/readyz`;
      const answer = await requestJson(url, { timeoutMs: 2_000 }).catch(() => undefined);
      if (answer?.status === 200) return;
      if (performance.now() > giveUpAt) {
        const seen = answer === undefined ? "no answer" : JSON.stringify(answer.body);
        throw new Error(`instance ${index + 1} is not ready: ${seen} ${deaths.join("\n")}`);
      }
      await sleep(50);
    }
  }

  async function start(index: number): Promise<void> {
    const command = startCommand(["serve"], variables[index] ?? {}, "/");
    running[index] = command;
    watchdog.guard(command.pid);
    void command.ended.then(({ code, stderr }) => {
      watchdog.release(command.pid);
      if (running[index] === command) {
        deaths.push(`instance ${index + 1} ended with ${code}: ${stderr.slice(-2_000)}`);
      }
    });
    await ready(index);
  }

  async function end(index: number, signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    const command = running[index];
    running[index] = undefined;
    command?.kill(signal);
    if (signal === "SIGKILL") kills.push({ instance: `instance-${index + 1}`, at: performance.now() });
    await command?.ended;
  }

  const stop = async () => void (await Promise.all(running.map((_, index) => end(index, "SIGKILL"))));
  try {
    await Promise.all(variables.map((_, index) => start(index)));
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    count: variables.length,
    end,
    start,
    freeze(index) {
      const command = running[index];
      command?.kill("SIGSTOP");
      return () => command?.kill("SIGCONT");
    },
    allReady: async () => void (await Promise.all(variables.map((_, index) => ready(index)))),
    kills,
    deaths,
    stop,
  };
}
