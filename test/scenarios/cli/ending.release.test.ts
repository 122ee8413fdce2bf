import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { harnessDescriptionSchema } from "../../../src/harness/control/description.ts";
import { type CliProcess, startCli, startNpmScript, startWithNpx } from "../../support/cli.ts";
import { stillRunningAfter } from "../../support/live-processes.ts";
import { commandOf } from "../../support/processes.ts";

/*
 * However `x402-kit up` ends, nothing of it stays: no node, no watchdog, no port, no temporary file.
 */

const upOnTwoNetworks = ["up", "--port", "0", "--networks", "base,polygon", "--json"];
/** Two nodes, and the watchdog. */
const startedForTwo = 3;

/** The ports of the service and of the nodes, once they are printed. */
async function portsOf(up: CliProcess): Promise<number[]> {
  const [line] = await up.printed(/^\{.+\n/m);
  const { facilitator, networks } = harnessDescriptionSchema.parse(JSON.parse(line));
  const urls = [facilitator.url, ...Object.values(networks).map(({ rpcUrl }) => rpcUrl)];
  return urls.map((url) => Number(new URL(url).port));
}

function nodeOf(up: CliProcess): number {
  const node = [...up.descendants()].find((pid) => commandOf(pid).includes("anvil"));
  if (node === undefined) throw new Error("no node was started");
  return node;
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  server.listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
    return true;
  } catch {
    return false;
  } finally {
    server.close();
  }
}

/** Variables with which the process under test runs some code of ours first. */
function preloading(code: string): Record<string, string> {
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}` };
}

/** It throws an error that is not caught, at SIGUSR2. */
const crashOnSigusr2 =
  'process.on("SIGUSR2", () => setTimeout(() => { throw new Error("a crash, on purpose"); }));';

/** Its nodes do not end when they are asked to. */
const deafNodes =
  'import { ChildProcess } from "node:child_process"; ChildProcess.prototype.kill = () => true;';

describe("nothing is left of up", () => {
  test.each([
    { how: "Ctrl-C", end: (up: CliProcess) => up.kill("SIGINT"), code: 0 },
    { how: "SIGTERM", end: (up: CliProcess) => up.kill("SIGTERM"), code: 0 },
    { how: "its terminal closes", end: (up: CliProcess) => up.kill("SIGHUP"), code: 0 },
    {
      how: "Ctrl-C twice at once, as npm passes it on",
      end(up: CliProcess) {
        up.kill("SIGINT");
        up.kill("SIGINT");
        setTimeout(() => up.kill("SIGINT"), 10);
      },
      code: 0,
    },
    { how: "an uncaught error", end: (up: CliProcess) => up.kill("SIGUSR2"), code: 1 },
  ])("after $how", async ({ how, end, code }) => {
    await using up = await startCli(upOnTwoNetworks, preloading(crashOnSigusr2));
    const ports = await portsOf(up);
    expect(up.descendants().size).toBe(startedForTwo);

    end(up);
    expect(await up.ended).toEqual({ code, signal: null });
    expect(await up.leftovers()).toEqual({ processes: [], files: [] });
    expect(await Promise.all(ports.map(isFree))).toEqual(ports.map(() => true));
    if (how === "an uncaught error") {
      expect(up.stderr()).toMatch(/^x402-kit: unforeseen: Error: a crash, on purpose\n {4}at /);
    } else {
      expect(up.stderr()).toBe("");
    }
  });

  test("after kill -9", async () => {
    await using up = await startCli(upOnTwoNetworks);
    const ports = await portsOf(up);
    expect(up.descendants().size).toBe(startedForTwo);

    up.kill("SIGKILL");
    expect(await up.ended).toEqual({ code: null, signal: "SIGKILL" });
    expect(await up.leftovers()).toEqual({ processes: [], files: [] });
    expect(await Promise.all(ports.map(isFree))).toEqual(ports.map(() => true));
  });

  test("after kill -9 of every Node process", async () => {
    await using up = await startCli(upOnTwoNetworks);
    const ports = await portsOf(up);
    const nodes = [...up.descendants()].filter((pid) => /^\S*\bnode /.test(commandOf(pid)));
    for (const pid of nodes) process.kill(pid, "SIGKILL");
    up.kill("SIGKILL");
    await up.ended;
    expect(await up.leftovers()).toEqual({ processes: [], files: [] });
    expect(await Promise.all(ports.map(isFree))).toEqual(ports.map(() => true));
  });

  test("by the next start, after kill -9 of it and its watchdog; what runs is left alone", async () => {
    await using running = await startCli(upOnTwoNetworks);
    await portsOf(running);
    await using up = await startCli(upOnTwoNetworks);
    const ports = await portsOf(up);
    const nodes = [...up.descendants()].filter((pid) => commandOf(pid).startsWith("anvil-of-x402-kit-"));
    expect(nodes).toHaveLength(2);
    for (const pid of up.descendants()) if (!nodes.includes(pid)) process.kill(pid, "SIGKILL");
    up.kill("SIGKILL");
    await up.ended;
    // A moment only: the next start that finds them may be one of another test.
    expect(await stillRunningAfter(nodes, 20)).toEqual(nodes);

    // Even where it is to have their ports.
    const [, port] = ports;
    await using next = await startCli([...upOnTwoNetworks, "--rpc-port", `base=${port}`]);
    expect(await portsOf(next)).toContain(port);
    expect(await up.leftovers()).toEqual({ processes: [], files: [] });
    expect(await Promise.all((await portsOf(running)).map(isFree))).toEqual([false, false, false]);
  });

  test("after Ctrl-C on npm start", async () => {
    await using npm = await startNpmScript(["start", "--", "--port", "0", "--networks", "base", "--json"]);
    const ports = await portsOf(npm);
    npm.kill("SIGINT");
    await npm.ended;
    expect(await npm.leftovers()).toEqual({ processes: [], files: [] });
    expect(await Promise.all(ports.map(isFree))).toEqual(ports.map(() => true));
  });

  test.each(["SIGTERM", "SIGKILL"] as const)(
    "after %s to npx, which leaves what it runs behind",
    async (signal) => {
      const folder = await mkdtemp(join(tmpdir(), "x402-kit-npx-"));
      try {
        await using npx = await startWithNpx(folder, upOnTwoNetworks);
        const ports = await portsOf(npx);
        npx.kill(signal);
        await npx.ended;
        expect((await npx.leftovers()).processes).toEqual([]);
        expect(await Promise.all(ports.map(isFree))).toEqual(ports.map(() => true));
      } finally {
        await rm(folder, { recursive: true });
      }
    },
  );

  test("after another Ctrl-C, when the first one takes for ever", async () => {
    await using up = await startCli(upOnTwoNetworks, preloading(deafNodes));
    const ports = await portsOf(up);
    let over = false;
    const ended = up.ended.finally(() => {
      over = true;
    });
    while (!over) {
      up.kill("SIGINT");
      await Promise.race([ended, sleep(700)]);
    }
    expect(await ended).toEqual({ code: 130, signal: null });
    expect(await up.leftovers()).toEqual({ processes: [], files: [] });
    expect(await Promise.all(ports.map(isFree))).toEqual(ports.map(() => true));
  });

  // From before anything runs to about when all does.
  test.each([0, 120, 240, 360, 480, 600])("after Ctrl-C %i ms into the start", async (delay) => {
    await using up = await startCli(["up", "--port", "0", "--networks", "base,polygon"]);
    await sleep(delay);
    up.kill("SIGINT");
    const { code, signal } = await up.ended;
    // 0 where it was ready already; the signal's own end where Node itself was not.
    expect([0, 130, "SIGINT"]).toContain(signal ?? code);
    expect(up.stderr()).toBe("");
    expect(await up.leftovers()).toEqual({ processes: [], files: [] });
  });
});

describe("a node that dies", () => {
  test("ends up with one clear error, and nothing is left", async () => {
    await using up = await startCli(["up", "--port", "0", "--networks", "base", "--no-demo"]);
    await up.printed(/Ctrl-C/);
    process.kill(nodeOf(up), "SIGKILL");
    expect(await up.ended).toEqual({ code: 1, signal: null });
    expect(up.stderr().replace(/127(\.\d+){3}:\d+/, "127.0.0.1:PORT")).toMatchInlineSnapshot(`
      "x402-kit up: The base node ended unexpectedly, by SIGKILL
        Everything was stopped, and the chains' states are gone. Start again: npx --no-install x402-kit up
        What the node wrote last:
          ==================
          0
          Listening on 127.0.0.1:PORT
          eth_chainId
          anvil_setLoggingEnabled
      "
    `);
    expect(await up.leftovers()).toEqual({ processes: [], files: [] });
  });
});
