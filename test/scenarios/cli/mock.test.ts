import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { startMockServer } from "../../../src/fixtures/mock-server/index.ts";
import { testKeys } from "../../../src/payer/test-keys.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { networkNames } from "../../../src/protocol/networks.ts";
import { repository, runCli, startCli } from "../../support/cli.ts";
import { runHere } from "../../support/run-here.ts";

/*
 * `x402-kit mock` as a process: what it prints, and that what is printed works.
 */

const run = promisify(execFile);

/** Pastes a command into a shell, where `curl` is at least the stand-in for it. */
async function paste(command: string): Promise<unknown> {
  const path = [process.env.PATH, join(repository, "test/support/bin"), dirname(process.execPath)];
  const { stdout } = await run("/bin/sh", ["-c", command], { env: { PATH: path.join(delimiter) } });
  return JSON.parse(stdout);
}

test("for a person: where it is, and curls to paste", async () => {
  await using mock = await startCli(["mock", "--port", "0"]);
  await mock.printed(/^Ready in \d+\.\d\d s\. Ctrl-C stops it\.$/m);
  const report = mock.stdout();
  expect(report).toMatch(/^Mock facilitator +http:\/\/127\.0\.0\.1:\d+\/v1$/m);
  for (const [name, { address }] of Object.entries(testPayers)) {
    expect(report).toContain(`\n${name}: ${address}\n`);
  }
  const verify = /^curl .*\\\n(?:.*\\\n)*.*$/m.exec(report)?.[0] ?? "";
  const scenario = /^curl .*__scenario .*$/m.exec(report)?.[0] ?? "";
  const settle = verify.replace("/verify", "/settle");
  expect(await paste(verify)).toMatchObject({ isValid: true, payer: testPayers.funded.address });
  expect(await paste(scenario)).toMatchObject({ scenarios: [{ name: "settle.insufficient_funds.empty" }] });
  expect(await paste(settle)).toMatchObject({ success: false, errorReason: "insufficient_funds" });
  expect(await paste(settle)).toMatchObject({ success: true });

  // A line for each request, as `up` prints them.
  await mock.printed(/^\S+ verify +base +funded +0\.01 USDC +valid/m);
  await mock.printed(
    /^\S+ settle +base +funded +0\.01 USDC +invalid: insufficient_funds.*\n +why: The payer holds/m,
  );
  await mock.printed(/^\S+ settle +base +funded +0\.01 USDC +settled 0x/m);

  mock.kill("SIGINT");
  expect(await mock.ended).toEqual({ code: 0, signal: null });
  expect(mock.stderr()).toBe("");
});

test("the commands of the guide work when pasted", async () => {
  const guide = await readFile(join(repository, "docs/guides/fixtures.md"), "utf8");
  const commands = guide.match(/^curl .*$/gm) ?? [];
  expect(commands.length).toBeGreaterThan(4);
  await using mock = await startMockServer();
  const origin = new URL(mock.url).origin;
  for (const command of commands) {
    const ordered = await paste(command.replace("http://127.0.0.1:4402", origin));
    const answers: Record<string, object> = {
      __sessions: { id: expect.any(String), facilitator: { url: expect.stringContaining("/__sessions/") } },
      __payment: { header: { name: "PAYMENT-SIGNATURE", value: expect.any(String) } },
      __shop: { case: expect.any(String), url: expect.stringMatching(/__shop\/report$/) },
      __scenario: { scenarios: expect.arrayContaining([expect.anything()]) },
    };
    const [path = ""] = command.match(/__\w+/) ?? [];
    expect(ordered).toMatchObject(answers[path] ?? { no: "answer is known" });
  }
});

test("--json prints one line with all that a client needs, and the scenario is what requests come to", async () => {
  const args = ["mock", "--port", "0", "--json", "--scenario", "verify.too_many_requests"];
  await using mock = await startCli(args);
  const [line] = await mock.printed(/^.+\n/);
  const description: unknown = JSON.parse(line);
  const address = expect.stringMatching(/^0x[0-9a-fA-F]{40}$/);
  expect(description).toEqual({
    facilitator: { url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/v1$/) },
    control: {
      scenario: expect.stringMatching(/:\d+\/__scenario$/),
      scenarios: expect.stringMatching(/:\d+\/__scenarios$/),
      payment: expect.stringMatching(/:\d+\/__payment$/),
      calls: expect.stringMatching(/:\d+\/__calls$/),
      advanceTime: expect.stringMatching(/:\d+\/__advance-time$/),
      clock: expect.stringMatching(/:\d+\/__clock$/),
      sessions: expect.stringMatching(/:\d+\/__sessions$/),
      shop: expect.stringMatching(/:\d+\/__shop$/),
      reset: expect.stringMatching(/:\d+\/__reset$/),
    },
    organization: { id: "org_local", apiKey: testKeys.local.apiKey, recipient: address },
    payers: Object.fromEntries(
      Object.entries(testPayers).map(([name, { address, privateKey }]) => [name, { address, privateKey }]),
    ),
    networks: Object.fromEntries(
      networkNames.map((name) => [
        name,
        expect.objectContaining({ chainId: expect.any(Number), facilitatorContract: address }),
      ]),
    ),
  });
  const { facilitator } = description as { facilitator: { url: string } };
  for (let i = 0; i < 2; i++) {
    const answer = await fetch(`${facilitator.url}/verify`, { method: "POST" });
    expect(answer.status).toBe(429);
  }
  mock.kill("SIGTERM");
  await mock.ended;
  expect(mock.stdout()).toBe(line);
});

test("an unknown scenario, with the nearest one", async () => {
  const args = ["mock", "--scenario", "settle.success,settle.insuficient_funds"];
  expect(await runHere(args)).toMatchObject({
    code: 2,
    stdout: "",
    stderr: expect.stringContaining(
      '--scenario: There is no scenario "settle.insuficient_funds"; the nearest are settle.insufficient_funds,',
    ),
  });
});

test("a port in use", async () => {
  const other = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  const { port } = other.address() as { port: number };
  try {
    const { code, stdout, stderr } = await runCli(["mock", "--port", String(port)]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr.replaceAll(String(port), "PORT")).toBe(
      [
        "x402-kit mock: Port PORT on 127.0.0.1 is in use",
        "  Stop what listens there; if it is x402-kit mock, use it as it is.",
        "  Choose another by --port or PORT (in a program, by the option port); 0 is any free one.",
        "",
      ].join("\n"),
    );
  } finally {
    other.close();
  }
});

test("pay against a mock says that it needs up, and why advises no pay there", async () => {
  await using mock = await startMockServer();
  const { origin } = new URL(mock.url);
  const { code, stderr } = await runHere(["pay", "--network", "base", "--url", origin]);
  expect(code).toBe(1);
  expect(stderr).toContain("An `x402-kit mock` has no chains to act on: this needs `x402-kit up`");
  const why = await runHere(["why", "--url", origin]);
  expect(why.stderr).toContain("Have a client verify or settle one.\n");
  expect(why.stderr).not.toContain("npx");
});
