import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type Server, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createLocalRpc } from "../../chain/rpc/local-rpc.ts";
import type { RpcCall } from "../../chain/rpc/rpc.ts";
import { networks } from "../../protocol/networks.ts";
import { ConfigurationError, KitError } from "../../util/errors.ts";
import { type ForkOption, type ForkOptions, type ForkSource, readForkOptions } from "../fork/fork-options.ts";
import { type Recording, writeRecording } from "../fork/recording.ts";
import { openFork } from "./start-fork.ts";

const facilitatorContract = "0x4020000000000000000000000000000000000001";
const hash = `0x${"ab".repeat(32)}` as const;
const secret = "SECRET-KEY-0123456789";

/** The answers of a node of base with one block. */
const results: Readonly<Record<string, unknown>> = {
  eth_chainId: "0x2105",
  eth_getBlockByNumber: { number: "0x64", hash },
  eth_getCode: "0x6001",
};

type Respond = (call: RpcCall & { id: unknown }, response: ServerResponse) => void;

const json = (response: ServerResponse, body: object) => response.end(JSON.stringify(body));
/** Answers as a node would, but for what is given here. */
const nodeWith =
  (other: Record<string, unknown> = {}): Respond =>
  ({ id, method }, response) =>
    json(response, { jsonrpc: "2.0", id, result: { ...results, ...other }[method] ?? null });
const refusing =
  (method: string, error: object): Respond =>
  (call, response) =>
    call.method === method
      ? json(response, { jsonrpc: "2.0", id: call.id, error })
      : nodeWith()(call, response);
const status =
  (code: number, headers = {}): Respond =>
  (_call, response) =>
    response.writeHead(code, headers).end(`no access with ${secret}`);

let server: Server;
let url: string;
let asked: RpcCall[];
let respond: Respond;
let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "x402-kit-open-fork-"));
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const call: RpcCall & { id: unknown } = JSON.parse(Buffer.concat(chunks).toString());
    asked.push({ method: call.method, params: call.params });
    respond(call, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  url = `http://127.0.0.1:${address.port}/v2/${secret}`;
});
beforeEach(() => {
  asked = [];
  respond = nodeWith();
});
afterAll(async () => {
  server.close();
  server.closeAllConnections();
  await rm(directory, { recursive: true });
});

async function open(option: ForkOption): Promise<ForkSource> {
  const spec = readForkOptions({ base: option }, ["base"]).get("base");
  if (spec === undefined) throw new Error("there is no spec");
  return openFork({
    network: networks.base,
    spec,
    facilitatorContract,
    blankAccounts: [facilitatorContract],
  });
}

/** The message and hints of an opening that must fail, which show nothing of the URL. */
async function failureOf(option: ForkOption): Promise<string> {
  const error = await open(option).then(
    () => new Error("it opened"),
    (reason: unknown) => reason,
  );
  if (!(error instanceof KitError)) throw error;
  const text = [error.message, ...error.hints].join("\n");
  expect(`${text} ${error.stack} ${String(error.cause)}`).not.toContain(secret);
  return text.replaceAll(directory, "DIRECTORY");
}

describe("a network that cannot be forked", () => {
  it("because nothing answers", async () => {
    const unused = createServer();
    await new Promise<void>((resolve) => unused.listen(0, "127.0.0.1", resolve));
    const address = unused.address();
    await new Promise((resolve) => unused.close(resolve));
    const port = typeof address === "object" ? address?.port : undefined;
    expect(await failureOf(`http://127.0.0.1:${port}/v2/${secret}`)).toMatchInlineSnapshot(`
      "The RPC URL that base is forked from gives no answer
      Check the URL and this machine's network.
      Without a network use a recording (npx --no-install x402-kit fork record --help), or no fork."
    `);
  });

  it("because the node behind the URL is not what it should be", async () => {
    const behaviours: Readonly<Record<string, Respond>> = {
      "refuses the key": status(401),
      "refuses the network": status(403),
      "is asked too much": status(429, { "retry-after": "0" }),
      "is broken": status(503),
      "answers with an error": refusing("eth_chainId", { code: -32_600, message: `no app of ${secret}` }),
      "is a web page": (_call, response) => response.end("<html>"),
      "is of another network": nodeWith({ eth_chainId: "0xa" }),
      "is of an unknown network": nodeWith({ eth_chainId: "0x1" }),
      "has no such block": nodeWith({ eth_getBlockByNumber: null }),
      "has no USDC": nodeWith({ eth_getCode: "0x" }),
      "has no state": refusing("eth_getCode", { code: -32_801, message: `pruned, see ${secret}` }),
    };
    const failures: Record<string, string> = {};
    for (const [what, behaviour] of Object.entries(behaviours)) {
      respond = behaviour;
      failures[what] = await failureOf({ url, blockNumber: 100 });
    }
    expect(failures).toMatchInlineSnapshot(`
      {
        "answers with an error": "The RPC URL that base is forked from refuses eth_chainId: no app of …
      Is its key allowed to use base?",
        "has no USDC": "The RPC URL that base is forked from has no USDC at 0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913 in block 100
      Is it really a node of base, and the block younger than its USDC?",
        "has no state": "The RPC URL that base is forked from has no state of block 100: pruned, see …
      Old blocks need an archive node. Leave the block number out to fork from the newest block.",
        "has no such block": "The RPC URL that base is forked from has no block 100
      Leave the block number out to fork from the newest block.",
        "is a web page": "The RPC URL that base is forked from does not answer with JSON-RPC
      Take the URL of a node's JSON-RPC, not that of an explorer or of a provider's page.",
        "is asked too much": "The RPC URL that base is forked from gets too many requests (HTTP 429)
      Wait, or take a URL with a key of your own, which may ask more.
      A recording asks the network once: npx --no-install x402-kit fork record --help",
        "is broken": "The RPC URL that base is forked from gives no answer
      Check the URL and this machine's network.
      Without a network use a recording (npx --no-install x402-kit fork record --help), or no fork.",
        "is of an unknown network": "The RPC URL that base is forked from is of chain 1; base is chain 8453
      Take a URL of base.",
        "is of another network": "The RPC URL that base is forked from is of chain 10 (optimism); base is chain 8453
      Fork optimism from it, or take a URL of base.",
        "refuses the key": "The RPC URL that base is forked from refuses access (HTTP 401)
      Its key is missing or wrong, or is not allowed to use base.",
        "refuses the network": "The RPC URL that base is forked from refuses access (HTTP 403)
      Its key is missing or wrong, or is not allowed to use base.",
      }
    `);
  });

  it("because the start is given up", async () => {
    const controller = new AbortController();
    respond = () => controller.abort(new Error("enough"));
    const spec = readForkOptions({ base: url }, ["base"]).get("base");
    if (spec === undefined) throw new Error("there is no spec");
    const opening = openFork({
      network: networks.base,
      spec,
      facilitatorContract,
      blankAccounts: [],
      signal: controller.signal,
    });
    await expect(opening).rejects.toThrow("enough");
  });
});

describe("a fork of a network", () => {
  it("is of the newest block, or of the one that was named", async () => {
    const newest = await open(url);
    expect(newest.blockNumber).toBe(100n);
    expect(asked[1]?.params).toEqual(["latest", false]);
    await newest.close();
    asked = [];
    const named = await open({ url, blockNumber: 99n });
    expect(asked[1]?.params).toEqual(["0x63", false]);
    await named.close();
  });

  it("repeats what fails in a way that may pass", async () => {
    const source = await open(url);
    const failures: Respond[] = [
      status(429, { "retry-after": "0" }),
      (_call, response) => response.destroy(),
      refusing("eth_getBalance", { code: -32_000, message: "header not found" }),
    ];
    respond = (call, response) => (failures.shift() ?? nodeWith({ eth_getBalance: "0x7" }))(call, response);
    const rpc = createLocalRpc(source.url);
    expect(await rpc.request("eth_getBalance", hash.slice(0, 42), "0x64")).toBe("0x7");
    expect(source.failures().count).toBe(0);
    await source.close();
  });

  it("asks for the state of a block once, and for what may change each time", async () => {
    const source = await open(url);
    respond = nodeWith({ eth_getBalance: "0x7" });
    asked = [];
    const rpc = createLocalRpc(source.url);
    for (const block of ["0x64", "0x64", "latest", "latest"]) {
      expect(await rpc.request("eth_getBalance", hash.slice(0, 42), block)).toBe("0x7");
    }
    expect(asked.map(({ params }) => params[1])).toEqual(["0x64", "latest", "latest"]);
    await source.close();
  });

  it("reports state that the network does not give, once, without the URL", async () => {
    const source = await open(url);
    const reports: string[] = [];
    source.onFailure(({ message }) => reports.push(message));
    respond = refusing("eth_getStorageAt", { code: -32_801, message: `missing trie node, see ${secret}` });
    const rpc = createLocalRpc(source.url);
    for (const _ of [1, 2]) {
      await expect(rpc.request("eth_getStorageAt", hash.slice(0, 42), "0x1", "0x64")).rejects.toThrow(
        "missing trie node, see …",
      );
    }
    expect(reports).toMatchInlineSnapshot(`
      [
        "The RPC URL that base is forked from refuses eth_getStorageAt ["0xabababababababababababababababababababab","0x1","0x64"]: missing trie node, see …",
      ]
    `);
    expect(source.failures()).toMatchObject({ count: 2, latest: { message: reports[0] } });
    await source.close();
  });

  it("gives on what the network says of a call", async () => {
    const source = await open(url);
    respond = refusing("eth_call", { code: 3, message: "execution reverted", data: "0x1234" });
    await expect(createLocalRpc(source.url).request("eth_call", {}, "0x1")).rejects.toThrow(
      "execution reverted",
    );
    expect(source.failures().count).toBe(0);
    await source.close();
  });

  it("asks nothing about the accounts of the harness, and the store of block hashes", async () => {
    const source = await open(url);
    asked = [];
    const rpc = createLocalRpc(source.url);
    const contract = facilitatorContract.toUpperCase().replace("0X", "0x");
    expect(
      await rpc.batch([
        ["eth_getCode", contract, "0x64"],
        ["eth_getBalance", contract, "0x64"],
        ["eth_getTransactionCount", contract, "0x64"],
        ["eth_getStorageAt", contract, "0x0", "0x64"],
        ["eth_getStorageAt", "0x0000f90827f1c53a10cb7a02335b175320002935", "0x5", "0x64"],
      ]),
    ).toEqual(["0x", "0x0", "0x0", `0x${"0".repeat(64)}`, `0x${"0".repeat(64)}`]);
    expect(asked).toEqual([]);
    await source.close();
  });
});

describe("a recording", () => {
  const recording = (): Recording => ({
    network: "base",
    chainId: 8453,
    block: { number: 100, hash },
    facilitatorContract,
    answers: [
      {
        method: "eth_getBalance",
        params: ["0x00000000000000000000000000000000000000Aa", "0x64"],
        result: "0x7",
      },
      { method: "eth_chainId", params: [], result: "0x2105" },
      { method: "eth_getLogs", params: [{}], result: null },
    ],
  });

  it("cannot be used where it is of something else, or not whole", async () => {
    const path = (name: string) => join(directory, name);
    await writeRecording(path("good"), recording());
    const good = await readFile(path("good"), "utf8");
    const changed = async (name: string, change: (text: string) => string | Buffer) => {
      await writeFile(path(name), change(good));
      return failureOf({ recording: path(name) });
    };
    expect({
      missing: await failureOf({ recording: path("nowhere") }),
      cutOff: await changed("cut-off", (text) => text.slice(0, -20)),
      cutOffCompressed: await changed("cut-off.gz", (text) => gzipSync(text).subarray(0, 100)),
      bomb: await changed("bomb.gz", () => gzipSync(Buffer.alloc(80 * 1_048_576))),
      somethingElse: await changed("something-else", () => '{"name":"x"}'),
      otherVersion: await changed("version", (text) => text.replace('"version": 1', '"version": 2')),
      badAnswer: await changed("bad-answer", (text) => text.replace('"eth_chainId"', "5")),
      otherNetwork: await changed("network", (text) =>
        text.replace("8453", "10").replace('"base"', '"optimism"'),
      ),
      otherContract: await changed("contract", (text) =>
        text.replace(facilitatorContract, `0x${"7".repeat(40)}`),
      ),
    }).toMatchInlineSnapshot(`
      {
        "badAnswer": "The recording DIRECTORY/bad-answer is damaged at answers[0].method
      Record it again: npx --no-install x402-kit fork record --network base --out FILE, with the RPC URL in the environment.",
        "bomb": "DIRECTORY/bomb.gz holds more than 64 MiB when it is unpacked
      x402-kit never writes a file that unpacks to so many times its size: do not use it.",
        "cutOff": "DIRECTORY/cut-off is not a recording of a fork, or is damaged
      Record it again: npx --no-install x402-kit fork record --network base --out FILE, with the RPC URL in the environment.",
        "cutOffCompressed": "The recording DIRECTORY/cut-off.gz is damaged
      Record it again: npx --no-install x402-kit fork record --network base --out FILE, with the RPC URL in the environment.",
        "missing": "The recording DIRECTORY/nowhere cannot be read
      Record it again: npx --no-install x402-kit fork record --network base --out FILE, with the RPC URL in the environment.",
        "otherContract": "The recording DIRECTORY/contract was made with the facilitator contract at 0x7777777777777777777777777777777777777777; here it is at 0x4020000000000000000000000000000000000001
      Configure the address that it was recorded with.
      Record it again: npx --no-install x402-kit fork record --network base --out FILE, with the RPC URL in the environment.",
        "otherNetwork": "The recording DIRECTORY/network is of optimism (chain 10), not of base (chain 8453)
      Record it again: npx --no-install x402-kit fork record --network base --out FILE, with the RPC URL in the environment.",
        "otherVersion": "The recording DIRECTORY/version has version 2; this release reads version 1
      Record it again: npx --no-install x402-kit fork record --network base --out FILE, with the RPC URL in the environment.",
        "somethingElse": "DIRECTORY/something-else is not a recording of a fork, or is damaged
      Record it again: npx --no-install x402-kit fork record --network base --out FILE, with the RPC URL in the environment.",
      }
    `);
  });

  it("answers what it holds, however it is spelled, and nothing else but look-ups of transactions", async () => {
    const path = join(directory, "small.gz");
    await writeRecording(path, recording());
    const source = await open({ recording: path });
    const rpc = createLocalRpc(source.url);
    expect(source.blockNumber).toBe(100n);
    expect(
      await rpc.batch([
        ["eth_getBalance", "0x00000000000000000000000000000000000000aA", "0x64"],
        ["eth_getLogs", {}],
        ["eth_getTransactionReceipt", hash],
      ]),
    ).toEqual(["0x7", null, null]);
    await expect(rpc.request("eth_getBalance", "0xab", "0x64")).rejects.toThrow();
    const failure = source.failures().latest;
    expect(
      [failure?.message, ...(failure?.hints ?? [])].join("\n").replaceAll(directory, "DIRECTORY"),
    ).toMatchInlineSnapshot(`
      "The recording DIRECTORY/small.gz of base has no answer to eth_getBalance ["0xab","0x64"]
      What a test reads of the chain must be recorded: run it once with
        fork: { base: { url: "https://…", recordTo: "DIRECTORY/small.gz" } }"
    `);
    await source.close();
  });

  it("that cannot be written leaves what was there", async () => {
    await expect(writeRecording(join(directory, "no", "folder"), recording())).rejects.toThrow(
      /The recording .* cannot be written/,
    );
  });

  it("is written in an order of its own, so that two can be compared", async () => {
    const { answers, ...rest } = recording();
    const [one, two] = [join(directory, "one"), join(directory, "two")];
    await writeRecording(one, { ...rest, answers });
    await writeRecording(two, { ...rest, answers: answers.toReversed() });
    expect(await readFile(one, "utf8")).toBe(await readFile(two, "utf8"));
  });
});

describe("fork options", () => {
  it("that cannot be are refused, without showing a URL", () => {
    const wrong: readonly unknown[] = [
      `https://rpc.example/${secret}`,
      { ethereum: "https://rpc.example" },
      { polygon: "https://rpc.example" },
      { base: `rpc.example/${secret}` },
      { base: `wss://rpc.example/${secret}` },
      { base: undefined },
      { base: {} },
      { base: { url: "https://rpc.example", recording: "base.json" } },
      { base: 5 },
      { base: { url: "https://rpc.example", blockNumber: -1 } },
      { base: { url: "https://rpc.example", blockNumber: 0.5 } },
      { base: { url: "https://rpc.example", blockNumber: "100" } },
      { base: { url: "https://rpc.example", block: 5 } },
      { base: { recording: "a.json", recordTo: "b.json" } },
      { base: { recording: "" } },
    ];
    const messages = wrong.map((fork) => {
      try {
        readForkOptions(fork as ForkOptions, ["base"]);
        return "it was taken";
      } catch (error) {
        return error instanceof ConfigurationError ? error.message : error;
      }
    });
    expect(messages).toMatchInlineSnapshot(`
      [
        "fork: names no network to fork (for example { base: "https://…" })",
        "fork.ethereum: there is no such network; there are base, base-sepolia, optimism, optimism-sepolia, polygon",
        "fork.polygon: polygon is not among the networks that are started: base",
        "fork.base.url: is not a URL that begins with https:// or http:// (for example https://base.example)",
        "fork.base.url: is not a URL that begins with https:// or http:// (for example https://base.example)",
        "fork.base: is undefined; leave it out to start an empty chain (for example { url: "https://…" } or { recording: "base.fork.json" })",
        "fork.base: needs a url, or a recording, and not both (for example { url: "https://…" } or { recording: "base.fork.json" })",
        "fork.base: needs a url, or a recording, and not both (for example { url: "https://…" } or { recording: "base.fork.json" })",
        "fork.base: is neither a URL nor a description of a fork (for example { url: "https://…" } or { recording: "base.fork.json" })",
        "fork.base.blockNumber: is not the number of a block (for example 21000000)",
        "fork.base.blockNumber: is not the number of a block (for example 21000000)",
        "fork.base.blockNumber: is not the number of a block (for example 21000000)",
        "fork.base.block: there is no such option (for example { url: "https://…" } or { recording: "base.fork.json" })",
        "fork.base: a recording has its block, and is not recorded again (for example { url: "https://…" } or { recording: "base.fork.json" })",
        "fork.base.recording: is not the path of a file (for example base.fork.json)",
      ]
    `);
  });
});
