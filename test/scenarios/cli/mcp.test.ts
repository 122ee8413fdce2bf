import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { harnessDescriptionSchema } from "../../../src/harness/control/description.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { requestJson } from "../../../src/util/http-client.ts";
import { childEnvironment } from "../../support/child-environment.ts";
import { bin, type CliProcess, startCli } from "../../support/cli.ts";

/* The MCP server of a running `up`, with the client of the SDK. */

let up: CliProcess;
let origin: string;
beforeAll(async () => {
  up = await startCli(["up", "--port", "0", "--networks", "base", "--no-demo", "--json"]);
  const [line] = await up.printed(/^.+\n/);
  origin = new URL(harnessDescriptionSchema.parse(JSON.parse(line)).facilitator.url).origin;
});
afterAll(() => up?.[Symbol.asyncDispose]());

const overStdio = (url: string) =>
  new StdioClientTransport({
    command: process.execPath,
    args: [bin, "mcp", "--url", url],
    env: childEnvironment(),
  });

const transports = {
  "over HTTP": () => new StreamableHTTPClientTransport(new URL(`${origin}/mcp`)),
  "over stdio": () => overStdio(origin),
};

describe.each(Object.entries(transports))("%s", (_name, createTransport) => {
  const client = new Client({ name: "test", version: "1" });
  beforeAll(() => client.connect(createTransport()));
  afterAll(() => client.close());

  async function call(name: string, values: Record<string, unknown> = {}) {
    const { content, isError } = await client.callTool({ name, arguments: values });
    const [first] = content;
    return { isError, body: JSON.parse(first?.type === "text" ? first.text : "") };
  }

  test("the tools of a first hour are there, each with a description of itself and its arguments", async () => {
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(
      expect.arrayContaining([
        ...["list", "why", "explain", "check", "buy", "pay", "fund", "approve", "fault", "advance_time"],
        ...["reset", "state", "read_doc", "setup"],
      ]),
    );
    for (const { description, inputSchema } of tools) {
      expect(description).not.toBe("");
      // They would have it write and read files.
      for (const name of ["junit", "html", "network_file"]) {
        expect(inputSchema.properties ?? {}).not.toHaveProperty(name);
      }
      for (const member of Object.values(inputSchema.properties ?? {}))
        expect(member).toHaveProperty("description");
    }
  });

  test("a payment that is refused is listed, and explained", async () => {
    expect((await call("pay", { payer: "empty", amount: 0.02 })).body).toMatchObject({ settled: false });
    expect(await call("why")).toMatchObject({
      isError: false,
      body: {
        payer: testPayers.empty.address,
        stale: false,
        explanations: [{ mistake: "insufficient_funds" }],
      },
    });
    const { payer } = (await call("why")).body;
    expect((await call("list", { limit: 1 })).body).toContainEqual(expect.objectContaining({ payer }));
  });

  test("an account is funded, a fault is set and ended, the time moves, and state shows it", async () => {
    const { address } = testPayers.empty;
    await call("fund", { network: "base", to: address, amount: "0.01" });
    const set = await call("fault", { network: "base", kind: "reset", times: 1 });
    expect(set.isError).toBe(false);
    const before = await call("state");
    expect(before.body).toMatchObject({ faults: [{ kind: "reset" }], chains: [{ network: "base" }] });
    await call("fault_clear");
    await call("advance_time", { network: "base", seconds: 3_600 });
    const { body } = await call("state");
    expect(body.faults).toEqual([]);
    expect(body.chains[0].time - before.body.chains[0].time).toBeGreaterThanOrEqual(3_600);
    await call("reset");
  });

  test("a shop's files come with the variables of this up, and pages of the documentation by their names", async () => {
    const { body } = await call("setup", { framework: "hono" });
    expect(body.files).toContainEqual({ path: ".env", text: expect.stringContaining(origin) });
    const paths = async (typescript: boolean) =>
      (await call("setup", { typescript })).body.files.map(({ path }: { path: string }) => path);
    expect(await paths(true)).toContain("shop.ts");
    expect(await paths(false)).toContain("shop.js");
    expect((await call("read_doc")).body.text).toContain("docs/guides/harness.md");
    expect((await call("read_doc", { name: "docs/errors.md" })).body.text).toContain("insufficient_funds");
  });

  test.each([
    ["a file of this machine", "explain", { what: import.meta.filename }],
    ["a page that is none", "read_doc", { name: "../../etc/passwd" }],
    ["an option in the place of a value", "why", { which: "--url=http://127.0.0.1:1" }],
    ["an argument that there is not", "pay", { url: "http://127.0.0.1:1" }],
    ["a network that there is not", "pay", { network: "mars" }],
    ["an id that was not seen", "why", { which: `0x${"1".repeat(64)}` }],
  ])("%s is refused", async (_name, tool, values) => {
    const { content, isError } = await client.callTool({ name: tool, arguments: values });
    expect(isError).toBe(true);
    expect(content).toHaveLength(1);
  });

  test("an argument that is missing is named", async () => {
    const { content } = await client.callTool({ name: "buy", arguments: { url: "http://127.0.0.1:1" } });
    expect(content).toMatchObject([{ text: expect.stringContaining("shop: is needed") }]);
  });
});

test("a page of another site reaches no tool", async () => {
  const { status } = await requestJson(`${origin}/mcp`, {
    method: "POST",
    headers: { origin: "https://evil.example", accept: "application/json, text/event-stream" },
    body: { jsonrpc: "2.0", id: 1, method: "tools/list" },
  });
  expect(status).toBe(403);
});

test("without an up, a tool says that nothing listens", async () => {
  const client = new Client({ name: "test", version: "1" });
  await client.connect(overStdio("http://127.0.0.1:1"));
  const { content, isError } = await client.callTool({ name: "state" });
  expect(isError).toBe(true);
  expect(content).toMatchObject([{ text: expect.stringContaining('"unreachable"') }]);
  await client.close();
});
