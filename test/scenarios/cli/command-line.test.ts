import { once } from "node:events";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { createServer as createTcpServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { localContracts } from "../../../src/payer/local-chains.ts";
import { kitVersion } from "../../../src/util/self-command.ts";
import { repository, start } from "../../support/cli.ts";
import { type LoopbackServer, listenOnLoopback } from "../../support/loopback-server.ts";
import { noteStarted } from "../../support/processes.ts";
import { problemsIn, runHere } from "../../support/run-here.ts";

/*
 * A wrong command line or variable: everything that is wrong at once, each with how to fix it,
 * exit code 2 (4 of the judges, whose 2 is a verdict), and nothing started.
 */

type Row = { args: string[]; env?: Record<string, string>; exitCode?: number };

/** Runs a command here, and notes which processes it started. */
async function run(args: readonly string[], env?: Record<string, string>) {
  const started = noteStarted();
  const outcome = await runHere(args, env);
  return { ...outcome, started: started() };
}

async function refusalOf({ args, env, exitCode = 2 }: Row): Promise<string> {
  const { code, stdout, stderr, started } = await run(args, env);
  expect({ code, stdout, started }).toEqual({ code: exitCode, stdout: "", started: [] });
  // These change with the contract's code.
  const { mainnet, testnet } = localContracts;
  return stderr.replaceAll(mainnet, "DEFAULT_MAINNET").replaceAll(testnet, "DEFAULT_TESTNET");
}

test("the script of a checkout works in the user's folder, and says how it is called from there", async () => {
  const folder = await mkdtemp(join(tmpdir(), "x402-kit-script-"));
  try {
    await writeFile(join(folder, "shop.js"), "// mine\n");
    const command = ["--prefix", resolve(repository), "run", "-s", "x402-kit", "--"];
    await using npm = await start("npm", [...command, "init", "--framework", "hono"], { cwd: folder });
    expect((await npm.ended).code).toBe(0);
    expect(await readdir(folder)).toContain("buyer.js");
    expect(npm.stdout()).toContain(`to see this one: npm ${command.join(" ")} init another-folder`);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("-v and --version print the version", async () => {
  const [short, long] = [await run(["-v"]), await run(["--version"])];
  expect(short).toEqual(long);
  expect(long).toMatchObject({ code: 0, stdout: `${kitVersion()}\n`, stderr: "" });
});

describe("a command line that cannot be", () => {
  test("an unknown command", async () => {
    const refusal = await refusalOf({ args: ["upp", "--port", "1"] });
    expect(refusal).toBe(
      'x402-kit: there is no command "upp"; did you mean up?\n\nThe commands: npx --no-install x402-kit --help\n',
    );
    expect(await refusalOf({ args: ["pya"] })).toMatch(/"pya"; did you mean pay\?\n/);
    expect(await refusalOf({ args: ["bogus"] })).toMatch(/^x402-kit: there is no command "bogus"\n/);
  });

  test("init into a folder whose variable is not set, which would be the working directory", async () => {
    expect(await refusalOf({ args: ["init", ""] })).toBe(
      "x402-kit init: one thing is wrong\n  FOLDER: is empty; leave it out for this folder\n\nOptions: npx --no-install x402-kit init --help\n",
    );
  });

  test("init into the folder of the kit itself", async () => {
    expect(await refusalOf({ args: ["init"] })).toBe(
      "x402-kit init: one thing is wrong\n  FOLDER: is that of x402-facilitator-kit itself; name another one (for example ../my-shop)\n\nOptions: npx --no-install x402-kit init --help\n",
    );
  });

  test("a second word that is nearly a command's", async () => {
    const refusal = await refusalOf({ args: ["fault", "lst"] });
    expect(refusal.split("\n")[0]).toBe(
      'x402-kit: there is no command "fault lst"; did you mean fault list?',
    );
  });

  test("a report that cannot be written, before anything is judged", async () => {
    const args = [
      "judge",
      "client",
      "--junit",
      "/nowhere/judge.xml",
      "--timeout",
      "3",
      "--",
      "node",
      "buyer.js",
    ];
    expect(await refusalOf({ args, exitCode: 4 })).toContain("\n  --junit: there is no folder /nowhere\n");
  });

  test.each([
    ["--out", ["fork", "record", "--network", "base"]],
    ["--state", ["up"]],
  ])(
    "a file for %s that cannot be written, before anything is asked or started: %o",
    async (option, args) => {
      expect(await refusalOf({ args: [...args, option, "/nowhere/file"] })).toContain(
        `\n  ${option}: there is no folder /nowhere\n`,
      );
      expect(await refusalOf({ args: [...args, option, "/"] })).toContain(`\n  ${option}: / is a folder\n`);
    },
  );

  test("a slow shop that is slower than the client may be", async () => {
    const args = ["judge", "client", "--timeout", "3", "--slow", "5", "--", "node", "buyer.js"];
    expect(await refusalOf({ args, exitCode: 4 })).toContain(
      "\n  --slow: 5 is not below --timeout, which is 3 (for example 1)\n",
    );
  });

  test("half of a command", async () => {
    const refusal = await refusalOf({ args: ["key", "creat"] });
    expect(refusal.split("\n")[0]).toBe(
      'x402-kit: there is no command "key creat"; did you mean key create?',
    );
    expect(refusal).toContain("  x402-kit key create         issue an API key");
    expect(refusal).not.toContain("x402-kit up ");
  });

  test.each<[row: Row, names: string[]]>([
    [
      { args: ["up", "now", "port", "--prot", "4402", "--json=yes", "--host", "--networks", "--demo"] },
      ["now", "port", "--prot", "--json", "--host", "--networks", "--demo"],
    ],
    [
      {
        args: ["pay", "--payer", "nobody", "--amount", "0.0x", "--version", "3", "--network", "ethereum"],
        env: { X402_KIT_URL: "localhost:4402" },
      },
      ["--network", "--payer", "--amount", "--version", "X402_KIT_URL"],
    ],
    [{ args: ["fund", "--to", "vitalik.eth", "--amount"] }, ["--amount", "--network", "--to"]],
    [{ args: ["advance-time", "--network", "base", "--seconds", "-5"] }, ["--seconds"]],
  ])("everything that is wrong at once: %j", async (row, names) => {
    const refusal = await refusalOf(row);
    expect(problemsIn(refusal)).toEqual(names);
    expect(refusal).toContain(`\nOptions: npx --no-install x402-kit ${row.args[0]} --help\n`);
  });

  test.each([
    [["up", "mock"], "mock: is not an option: options begin with --"],
    [["fault", "base", "reorg", "2"], "2: is not an option: options begin with --"],
    [["org", "create", "--name"], '--name: needs a value (for example --name "Coffee shop")'],
  ])("nothing is suggested that is not near, and what can be pasted: %j", async (args, problem) => {
    expect(await refusalOf({ args })).toContain(`\n  ${problem}\n`);
  });

  test("values that cannot be, from the command line", async () => {
    const args = [
      ...["up", "--networks", "base,goerli", "--port", "99999", "--host", "nowhere", "--settle-wait", "0"],
      ...["--log-level", "loud", "--contract-mainnet", "0x12", "--contract-testnet", `0x${"0".repeat(40)}`],
    ];
    expect(await refusalOf({ args })).toMatchInlineSnapshot(`
      "x402-kit up: 7 things are wrong
        --networks: "goerli" is not one of base, base-sepolia, optimism, optimism-sepolia, polygon (for example base,polygon)
        --port: "99999" is not a whole number from 0 to 65535 (for example 8080)
        --host: "nowhere" is not an IP address (for example 0.0.0.0)
        --contract-mainnet: is not an address: 0x and 40 hexadecimal digits (for example 0x4020000000000000000000000000000000000001)
        --contract-testnet: is the zero address (for example 0x4020000000000000000000000000000000000002)
        --settle-wait: "0" is not a whole number from 100 to 600000 (for example 45000)
        --log-level: "loud" is not one of fatal, error, warn, info, debug, trace, silent (for example info)

      Options: npx --no-install x402-kit up --help
      "
    `);
  });

  test("values that cannot be, from variables; those of the command line win", async () => {
    const env = {
      PORT: "abc",
      HOST: "127.0.0.1",
      LOG_LEVEL: "",
      SETTLE_WAIT_MS: "1.5",
      FACILITATOR_CONTRACT_MAINNET: "base.eth",
      FACILITATOR_CONTRACT_TESTNET: "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
    };
    const args = ["up", "--networks", "base,base", "--settle-wait", "500"];
    expect(await refusalOf({ args, env })).toMatchInlineSnapshot(`
      "x402-kit up: 4 things are wrong
        --networks: names a network twice (for example base,polygon)
        PORT: "abc" is not a whole number from 0 to 65535 (for example 8080)
        FACILITATOR_CONTRACT_MAINNET: is not an address: 0x and 40 hexadecimal digits (for example 0x4020000000000000000000000000000000000001)
        FACILITATOR_CONTRACT_TESTNET: is the address of the asset "USDC" (for example DEFAULT_TESTNET)

      Options: npx --no-install x402-kit up --help
      "
    `);
  });

  test("one address for mainnets and testnets", async () => {
    const address = "0x4020000000000000000000000000000000000001";
    const env = { FACILITATOR_CONTRACT_MAINNET: address };
    const args = ["up", "--contract-testnet", address];
    expect(await refusalOf({ args, env })).toMatchInlineSnapshot(`
      "x402-kit up: one thing is wrong
        --contract-testnet: is the same address as FACILITATOR_CONTRACT_MAINNET; mainnets and testnets need one each (for example DEFAULT_TESTNET)

      Options: npx --no-install x402-kit up --help
      "
    `);
  });

  test("fault with the word that ends one in the place of a kind", async () => {
    expect(await refusalOf({ args: ["fault", "base", "clear"] })).toMatchInlineSnapshot(`
      "x402-kit fault: one thing is wrong
        KIND: is no kind; it is npx --no-install x402-kit fault clear, without a network (for example answer-lost)

      Options: npx --no-install x402-kit fault --help
      "
    `);
  });
});

describe("help", () => {
  const helpOf = async (...args: string[]) => {
    const { code, stdout, stderr, started } = await run(args);
    expect({ code, stderr, started }).toEqual({ code: 0, stderr: "", started: [] });
    return stdout;
  };

  test("without a command", async () => {
    const lines = (await helpOf()).split("\n");
    expect(lines[0]).toBe("x402-kit: an x402 facilitator, and local chains to try it on");
    for (const command of [
      "up",
      "pay",
      "deploy",
      "migrate",
      "org create",
      "key rotate",
      "settlements list",
    ]) {
      expect(lines.filter((line) => line.startsWith(`  x402-kit ${command} `))).toHaveLength(1);
    }
    expect(lines.at(-2)).toBe("Options of a command: x402-kit COMMAND --help");
    expect(await helpOf("--help")).toBe(await helpOf());
  });

  test.each([[], ["up"], ["serve"], ["deploy"], ["fault"], ["settlements", "list"], ["conformance"]])(
    "of %j fits a terminal of 80 columns",
    async (...words) => {
      const lines = (await helpOf("help", ...words.flat())).split("\n");
      // A word of an example may be longer than a line.
      expect(lines.filter((line) => line.length > 80 && line.trim().includes(" ", 2))).toEqual([]);
    },
  );

  test("of a command of a group that is a command itself", async () => {
    expect(await helpOf("help", "fault", "list")).toMatch(/^x402-kit fault list: list the faults/);
  });

  test("of a group of commands, and of one of them", async () => {
    expect((await helpOf("key", "--help")).match(/x402-kit key [a-z-]+/g)).toEqual([
      "x402-kit key create",
      "x402-kit key list",
      "x402-kit key rotate",
      "x402-kit key revoke",
      "x402-kit key accept-pepper",
    ]);
    expect(await helpOf("help", "key", "revoke")).toMatch(/^x402-kit key revoke: /);
  });

  // test/surface has the texts.
  test("of a command, whatever else is given", async () => {
    expect(await helpOf("up", "--help", "--nonsense")).toBe(await helpOf("help", "up"));
    expect(await helpOf("pay", "-h")).toBe(await helpOf("help", "pay"));
  });
});

describe.each([
  { command: "pay", args: ["pay"] },
  { command: "fund", args: ["fund", "--network", "base", "--to", `0x${"12".repeat(20)}`, "--amount", "1"] },
  { command: "advance-time", args: ["advance-time", "--network", "base", "--seconds", "1"] },
  { command: "reset", args: ["reset"] },
])("$command", ({ args }) => {
  let page: LoopbackServer;
  beforeAll(async () => {
    page = await listenOnLoopback((_request, response) => response.end("<h1>It works!</h1>"));
  });
  afterAll(() => page?.close());

  test("where nothing listens says how to start it", async () => {
    const closed = createTcpServer().listen(0, "127.0.0.1");
    await once(closed, "listening");
    const { port } = closed.address() as { port: number };
    closed.close();
    const url = `http://127.0.0.1:${port}`;
    expect(
      (await refusalOf({ args: [...args, "--url", url], exitCode: 3 })).replaceAll(String(port), "PORT"),
    ).toBe(
      `x402-kit ${args[0]}: ${[
        "Nothing answers at http://127.0.0.1:PORT",
        "  because: connect ECONNREFUSED 127.0.0.1:PORT",
        "  Start it in another terminal: npx --no-install x402-kit up",
        "  If it listens elsewhere, give the address that `x402-kit up` printed, such as http://127.0.0.1:4402",
        "",
      ].join("\n")}`,
    );
  });

  test("where something else answers says so", async () => {
    const refusal = await refusalOf({ args, env: { X402_KIT_URL: page.origin }, exitCode: 1 });
    expect(refusal.replaceAll(page.origin, "URL")).toBe(
      `x402-kit ${args[0]}: ${[
        "What answers at URL is not an x402-kit harness",
        "  Give the address that `x402-kit up` printed, such as http://127.0.0.1:4402",
        "  An `x402-kit mock` has no chains to act on: this needs `x402-kit up`",
        "",
      ].join("\n")}`,
    );
  });
});
