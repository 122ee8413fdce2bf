import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stillRunningAfter } from "../../../test/support/live-processes.ts";
import { createLocalRpc } from "../../chain/rpc/local-rpc.ts";
import { KitError } from "../../util/errors.ts";
import { startWatchdog, type Watchdog } from "../../util/watchdog.ts";
import { anvilBinary, type LaunchOptions } from "./launch-anvil.ts";
import { type LocalNode, startNode } from "./nodes.ts";

let watchdog: Watchdog;
let guarded: number[];
let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "x402-kit-nodes-"));
  const real = startWatchdog();
  guarded = [];
  watchdog = {
    ...real,
    guard(pid) {
      guarded.push(pid);
      real.guard(pid);
    },
  };
});
afterAll(async () => {
  await watchdog.close();
  await rm(directory, { recursive: true });
});

const start = (options: Partial<LaunchOptions> = {}) =>
  startNode({ name: "base", chainId: 8453, watchdog, ...options });

/** The error of a start that must fail, when it leaves no process. */
async function failureOf(starting: Promise<LocalNode>): Promise<KitError> {
  const before = guarded.length;
  const error = await starting.then(
    () => new Error("it started"),
    (reason: unknown) => reason,
  );
  expect(await stillRunningAfter(guarded.slice(before))).toEqual([]);
  if (!(error instanceof KitError)) throw error;
  return error;
}

async function script(name: string, text: string): Promise<string> {
  const path = join(directory, name);
  await writeFile(path, text);
  await chmod(path, 0o755);
  return path;
}

describe("a node", () => {
  it("answers with its chain id and has a block", async () => {
    const node = await start();
    expect(node.rpcUrl).toBe(`http://127.0.0.1:${node.port}`);
    expect(await node.batch([["eth_chainId"], ["net_version"]])).toEqual(["0x2105", "8453"]);
    expect(Number(await node.request("eth_blockNumber"))).toBeGreaterThanOrEqual(1);
    expect(guarded).toContain(node.pid);
    await node.stop();
    expect(await stillRunningAfter([node.pid], 0)).toEqual([]);
  });

  // On Linux all of 127.0.0.0/8 is this machine: a node that listened on every interface would answer here.
  it.runIf(process.platform === "linux")("can be reached at 127.0.0.1 only", async () => {
    const node = await start();
    await expect(createLocalRpc(`http://127.0.0.2:${node.port}`).request("eth_chainId")).rejects.toThrow(
      "gave no answer",
    );
    await node.stop();
  });

  it("has no development accounts, the rules of Prague, and room for a loaded relayer", async () => {
    const node = await start();
    expect(await node.request("eth_accounts")).toEqual([]);
    expect(await node.request("anvil_nodeInfo")).toMatchObject({
      hardFork: expect.stringMatching(/prague/i),
    });
    expect(await node.request("eth_getBlockByNumber", "latest", false)).toMatchObject({
      gasLimit: `0x${(300_000_000).toString(16)}`,
    });
    await node.stop();
  });

  it("can be stopped again, and refuses requests from then on with an error that says so", async () => {
    const node = await start();
    await Promise.all([node.stop(), node.stop()]);
    await node.stop();
    await expect(node.request("eth_chainId")).rejects.toThrow("The base node was stopped");
  });

  it("is killed when it does not end when asked to", async () => {
    const node = await start();
    process.kill(node.pid, "SIGSTOP");
    await node.stop();
    expect(await stillRunningAfter([node.pid], 0)).toEqual([]);
  });

  it("that dies is reported: to listeners, to requests under way, and to later ones", async () => {
    const node = await start();
    const reports: string[] = [];
    node.onExit(({ message }) => reports.push(message));
    // Nothing is mined for this call, so the node is waiting when it dies.
    await node.request("evm_setIntervalMining", 0);
    const hanging = node.request("anvil_mine", "0xffffff");
    await sleep(20);
    process.kill(node.pid, "SIGKILL");

    const message = "The base node ended unexpectedly, by SIGKILL";
    await expect(hanging).rejects.toThrow(message);
    await expect(node.request("eth_chainId")).rejects.toThrow(message);
    node.onExit((error) => reports.push(error.message));
    expect(reports).toEqual([message, message]);
    await node.stop();
    expect(reports).toHaveLength(2);
  });

  it("that is stopped is not reported as dead", async () => {
    const node = await start();
    let reported = false;
    node.onExit(() => {
      reported = true;
    });
    await node.stop();
    await sleep(50);
    expect(reported).toBe(false);
  });

  it("gets a port of its own, however many start at once", async () => {
    const nodes = await Promise.all(Array.from({ length: 8 }, () => start()));
    expect(new Set(nodes.map(({ port }) => port)).size).toBe(8);
    await Promise.all(nodes.map((node) => node.stop()));
  });
});

describe("a node that cannot start", () => {
  it("because the binary is missing says so", async () => {
    const error = await failureOf(start({ binary: "/nowhere/anvil" }));
    expect(error.message).toMatchInlineSnapshot(
      `"The anvil binary at /nowhere/anvil is missing or cannot be executed"`,
    );
    expect(error.hints).toMatchInlineSnapshot(`
      [
        "Install it again: npm install @foundry-rs/anvil",
        "Or allow its execution: chmod +x /nowhere/anvil",
      ]
    `);
  });

  it("because the binary cannot be run by this system says so", async () => {
    // The interpreter does not exist, as the loader of a glibc binary does not on Alpine.
    const binary = await script("foreign", "#!/nowhere/interpreter\n");
    const error = await failureOf(start({ binary }));
    expect(error.message).toBe(`This system cannot run the anvil binary at ${binary}`);
    expect(error.hints).toMatchInlineSnapshot(`
      [
        "On Linux it needs glibc 2.35 or newer, as in Debian 12 or Ubuntu 22.04; Alpine has none.",
      ]
    `);
  });

  it("because the process ends shows what it wrote", async () => {
    const binary = await script("broken", "#!/bin/sh\necho 'GLIBC_2.35 not found' >&2\nexit 1\n");
    const error = await failureOf(start({ binary }));
    expect(error.message).toBe("The base node did not start");
    expect(error.hints).toContain("GLIBC_2.35 not found");
  });

  it("in time is given up and killed", async () => {
    const binary = await script("silent", "#!/bin/sh\ntrap '' TERM\nexec sleep 60\n");
    const error = await failureOf(start({ binary, startTimeoutMs: 200 }));
    expect(error.message).toBe("The base node did not start within 200 ms");
  });

  it("because it answers with another chain id is stopped", async () => {
    const text = `#!/bin/sh\nexec "${anvilBinary()}" "$@" --chain-id 1\n`.replace(
      '"$@"',
      "--port 0 --accounts 0",
    );
    const error = await failureOf(start({ binary: await script("other-chain", text) }));
    expect(error.message).toBe("The base node answers with chain id 0x1 instead of 8453");
  });

  it("because the start is given up leaves no process, whenever that happens", async () => {
    for (const delay of [0, 5, 20, 40, 60, 80]) {
      const controller = new AbortController();
      const before = guarded.length;
      const starting = start({ signal: controller.signal });
      setTimeout(() => controller.abort(new Error("enough")), delay);
      const outcome = await starting.catch((error: unknown) => error);
      if (outcome instanceof Error) expect(outcome.message).toBe("enough");
      else await (outcome as LocalNode).stop();
      expect(await stillRunningAfter(guarded.slice(before))).toEqual([]);
    }
    await expect(start({ signal: AbortSignal.abort(new Error("enough")) })).rejects.toThrow("enough");
  });
});

describe("anvilBinary", () => {
  it("is the native binary of this platform", () => {
    expect(anvilBinary()).toMatch(/@foundry-rs[\\/]anvil-[a-z0-9-]+[\\/]bin[\\/]anvil(\.exe)?$/);
  });

  it("says which platforms there are when there is none for this one", () => {
    expect(() => anvilBinary("aix", "ppc64")).toThrowErrorMatchingInlineSnapshot(
      `[KitError: There is no anvil binary for aix on ppc64]`,
    );
  });

  it("says what to install when it is not there", () => {
    const other = process.platform === "win32" ? "linux" : "win32";
    const failure = (() => {
      try {
        return anvilBinary(other, "x64");
      } catch (error) {
        return error;
      }
    })();
    expect(failure).toBeInstanceOf(KitError);
    expect(failure).toMatchObject({
      message: "The anvil binary is not installed",
      hints: expect.arrayContaining([expect.stringContaining("npm install @foundry-rs/anvil")]),
    });
  });
});
