import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runCli, startCli } from "../../support/cli.ts";
import { type RealChain, startRealChain } from "../../support/real-chain.ts";

/*
 * Forks from the command line, of a chain on this machine that stands in for the real one: recorded, forked by `up`,
 * and started again when that chain is gone.
 */

let real: RealChain;
let directory: string;
let recording: string;
beforeAll(async () => {
  real = await startRealChain("base");
  directory = await mkdtemp(join(tmpdir(), "x402-kit-fork-cli-"));
  recording = join(directory, "base.fork.json.gz");
});
afterAll(async () => {
  await real.stop();
  await rm(directory, { recursive: true });
});

const up = (args: readonly string[], env = {}) =>
  startCli(["up", "--networks", "base", "--port", "0", ...args], env);

test("fork record writes what a fork needs", async () => {
  const { code, stdout, stderr } = await runCli(
    ["fork", "record", "--network", "base", "--out", recording],
    // Of several the first.
    { BASE_RPC_URL: `${real.node.rpcUrl},https://other.invalid` },
  );
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout.replaceAll(directory, "DIRECTORY").replaceAll(/\d+ KB/g, "N KB")).toMatchInlineSnapshot(`
    "Recorded base at block 3: DIRECTORY/base.fork.json.gz, N KB.
    It starts with no network:
      createHarness({ fork: { base: { recording: "DIRECTORY/base.fork.json.gz" } } })
      npx --no-install x402-kit up --networks base --fork base=DIRECTORY/base.fork.json.gz
    "
  `);
});

test("up --fork forks the networks whose RPC URL is set, and shows no URL in the arguments of a process", async () => {
  await using cli = await up(["--fork"], { BASE_RPC_URL: real.node.rpcUrl });
  const [, line] = await cli.printed(/^(base is forked .*)$/m);
  expect(line).toBe("base is forked from block 3, with its real USDC.");
  if (process.platform !== "linux") return;
  const commands = await Promise.all(
    [...cli.descendants()].map((pid) => readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")),
  );
  expect(commands.filter((command) => command.includes("--fork-url"))).toHaveLength(1);
  expect(commands.join()).not.toContain(`:${real.node.port}`);
});

test("up --fork starts a recording when the network is gone", async () => {
  await real.stop();
  await using cli = await up(["--fork", `base=${recording}`]);
  await cli.printed(/^base is forked from a recording of block 3, with its real USDC\.$/m);
  await cli.printed(/^Ready in /m);
  cli.kill("SIGINT");
  expect(await cli.ended).toEqual({ code: 0, signal: null });
  expect(await cli.leftovers()).toEqual({ processes: [], files: [] });
});

describe("a fork that cannot be says why, and starts nothing", () => {
  const secret = "SECRET-0123456789";
  // No other test listens there: the port of a node that has ended may be another's by now.
  const url = `http://127.0.0.1:1/v2/${secret}`;
  const args = (...fork: string[]) => ["up", "--networks", "base", "--port", "0", "--fork", ...fork];

  async function refusalOf(words: readonly string[], exitCode: number, env = {}): Promise<string> {
    const { code, stdout, stderr } = await runCli(words, env);
    expect({ code, stdout }).toEqual({ code: exitCode, stdout: "" });
    expect(stderr).not.toContain(secret);
    return stderr.replaceAll(directory, "DIRECTORY");
  }

  test("because the network does not answer", async () => {
    expect(await refusalOf(args("base"), 3, { BASE_RPC_URL: url })).toMatchInlineSnapshot(`
      "x402-kit up: The RPC URL that base is forked from gives no answer
        because: the connection failed (ECONNREFUSED)
        Check the URL and this machine's network.
        Without a network use a recording (npx --no-install x402-kit fork record --help), or no fork.
      "
    `);
    const words = ["fork", "record", "--network", "base", "--out", join(directory, "none.json")];
    expect(await refusalOf(words, 3, { BASE_RPC_URL: url })).toMatchInlineSnapshot(`
      "x402-kit fork record: The RPC URL that base is forked from gives no answer
        because: the connection failed (ECONNREFUSED)
        Check the URL and this machine's network.
        Without a network use a recording (npx --no-install x402-kit fork record --help), or no fork.
      "
    `);
    expect(await readdir(directory)).toEqual(["base.fork.json.gz"]);
  });

  test("because the recording is damaged", async () => {
    const cut = join(directory, "cut.json.gz");
    await writeFile(cut, (await readFile(recording)).subarray(0, 1_000));
    expect(await refusalOf(args(`base=${cut}`), 1)).toMatchInlineSnapshot(`
      "x402-kit up: The recording DIRECTORY/cut.json.gz is damaged
        because: unexpected end of file
        Record it again: npx --no-install x402-kit fork record --network base --out FILE, with the RPC URL in the environment.
      "
    `);
  });
});
