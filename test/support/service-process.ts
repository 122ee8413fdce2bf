import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import type { Hex } from "../../src/protocol/hex.ts";
import { type JsonResponse, requestJson } from "../../src/util/http-client.ts";
import type { Composition } from "./composition.ts";
import type { AnyBoundary } from "./crash/boundaries.ts";
import { programFile } from "./programs.ts";
import type { Body } from "./service.ts";

/** The key of the only organization that the processes know. */
export const apiKey = `x4k_crash_${"0".repeat(64)}`;
const headers = { authorization: apiKey };

/** A service in a separate process. */
export type ServiceProcess = {
  child: ChildProcess;
  origin: string;
  settle(body: Body): Promise<JsonResponse>;
  /** Settles repeatedly until the lease of a dead process has expired and the answer is final. */
  settleUntilDecided(body: Body): Promise<JsonResponse>;
  /** Settles; resolves when the process has killed itself (`dieAt`), with its answer if it gave one before. */
  settleAndDie(body: Body): Promise<JsonResponse | undefined>;
  get(path: string): Promise<JsonResponse>;
  /** Ends it as an operator would; resolves when it has ended. */
  stop(): Promise<void>;
  /** Ends it without warning. */
  kill(): Promise<void>;
};

const running = new Set<ChildProcess>();

/**
 * Starts a service on a database and a chain. With `dieAt` it kills itself at a step of its first settle. Its operator
 * is the harness's, unless other private keys are given. With `drainDelayMs`, SIGTERM ends it as it ends `serve`: it
 * reports that it is not ready, accepts requests for that time, and finishes open work.
 */
export async function startServiceProcess(
  { chain }: Composition,
  databaseUrl: string,
  {
    dieAt,
    operators,
    rpcUrl = chain.rpcUrl,
    drainDelayMs,
    takesBytes,
    leaseMs = 600,
    blockTimeMs = 200,
    transferFrom,
  }: {
    dieAt?: AnyBoundary;
    operators?: readonly Hex[];
    rpcUrl?: string | undefined;
    drainDelayMs?: number;
    /** The largest transaction that nodes accept, in bytes. The process kills itself when it first sends a rejected payment alone. */
    takesBytes?: number;
    /** Short by default, so that the leases of a dead process end soon. */
    leaseMs?: number;
    /** The block time in the service's configuration; short by default, so that it polls often. */
    blockTimeMs?: number;
    /** True if payments use the payment method that exists only in tests. */
    transferFrom?: boolean;
  } = {},
): Promise<ServiceProcess> {
  const { facilitatorContract } = chain;
  const script = programFile("test/support/crash/service-child.ts");
  const wrapping = { dieAt, takesBytes, leaseMs, blockTimeMs, transferFrom };
  const service = { rpcUrl, facilitatorContract, databaseUrl, apiKey, operators, drainDelayMs };
  const options = JSON.stringify({ ...service, ...wrapping });
  const child = spawn(process.execPath, [script, options], { stdio: ["ignore", "pipe", "inherit"] });
  running.add(child);
  child.once("exit", () => running.delete(child));
  const [url] = await Promise.race([
    once(createInterface(child.stdout), "line"),
    once(child, "exit").then(([code]) => {
      throw new Error(`the service ended with ${code} before it was ready`);
    }),
  ]);
  const end = async (signal: "SIGTERM" | "SIGKILL") => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    child.kill(signal);
    await exited;
  };
  const settle = (body: Body) => requestJson(`${url}/v1/settle`, { method: "POST", headers, body });
  return {
    child,
    origin: url,
    settle,
    async settleUntilDecided(body) {
      for (;;) {
        const answer = await settle(body);
        if (answer.status === 200) return answer;
        await sleep(20);
      }
    },
    async settleAndDie(body) {
      const died = once(child, "exit");
      const answer = await settle(body).catch(() => undefined);
      const [, signal] = await died;
      if (signal !== "SIGKILL") throw new Error(`the process was not killed, but ended by ${signal}`);
      return answer;
    },
    get: (path) => requestJson(`${url}${path}`, { headers }),
    stop: () => end("SIGTERM"),
    kill: () => end("SIGKILL"),
  };
}

/**
 * Lets a service kill itself at a step of settling a payment, and has the next one settle it.
 *
 * @returns the next one's answer, and how much the organization's recipient got from both
 */
export async function settleAfterDeath(
  scene: Composition,
  body: Body,
  {
    between,
    dieAt,
    ...options
  }: { between?: () => Promise<unknown>; dieAt: AnyBoundary; transferFrom?: boolean },
): Promise<{ answer: unknown; received: bigint }> {
  const before = await scene.recipientBalance();
  const first = await startServiceProcess(scene, scene.databaseUrl(), { dieAt, ...options });
  await first.settleAndDie(body);
  await between?.();
  const second = await startServiceProcess(scene, scene.databaseUrl(), options);
  const { body: answer } = await second.settleUntilDecided(body);
  const received = (await scene.recipientBalance()) - before;
  await second.stop();
  return { answer, received };
}

/** Ends the processes that a failed test left running. */
export function killServiceProcesses(): void {
  for (const child of running) child.kill("SIGKILL");
}
