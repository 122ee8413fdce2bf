import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { InvalidValue } from "../../config/values.ts";
import { ConfigurationError } from "../../util/errors.ts";
import { readForkRequests, resolveForks } from "./fork-requests.ts";

const secret = "SECRET-0123456789";
const url = `https://rpc.example/v2/${secret}`;
const networks = ["base", "polygon"] as const;

const resolve = (text: string, env = {}) => resolveForks(readForkRequests(text), networks, env);

/** What is wrong, without any URL. */
function problemOf(text: string, env = {}): string {
  try {
    resolve(text, env);
    return "nothing";
  } catch (error) {
    if (!(error instanceof ConfigurationError || error instanceof InvalidValue)) throw error;
    expect(error.message).not.toContain(secret);
    return error.message;
  }
}

describe("--fork", () => {
  test("takes the URL that is in the file of a variable", async () => {
    const directory = await mkdtemp(join(tmpdir(), "x402-kit-fork-"));
    const file = join(directory, "url");
    await writeFile(file, `${url}\n`);
    try {
      expect(resolve("", { BASE_RPC_URL_FILE: file })).toEqual({ base: url });
      expect(resolve("base", { BASE_RPC_URL_FILE: file })).toEqual({ base: url });
    } finally {
      await rm(directory, { recursive: true });
    }
  });

  test.each([
    ["bare takes the networks whose variable is set", "", { BASE_RPC_URL: url }, { base: url }],
    ["takes the first URL of several", "", { BASE_RPC_URL: `${url}, https://b.example` }, { base: url }],
    [
      "with names takes their variables",
      "polygon",
      { POLYGON_RPC_URL: url, BASE_RPC_URL: url },
      { polygon: url },
    ],
    ["takes a URL", `base=${url}?a=b`, {}, { base: `${url}?a=b` }],
    [
      "takes recordings",
      "base=a.json, polygon=b.json",
      {},
      {
        base: { recording: "a.json" },
        polygon: { recording: "b.json" },
      },
    ],
  ])("%s", (_what, text, env, forks) => {
    expect(resolve(text, env)).toEqual(forks);
  });

  test("that was not given forks nothing, whatever the environment", () => {
    expect(resolveForks(undefined, networks, { BASE_RPC_URL: url })).toEqual({});
  });

  test("says what is wrong, and shows no URL", () => {
    expect([
      problemOf(""),
      problemOf("", { BASE_RPC_URL: " ", OPTIMISM_RPC_URL: url }),
      problemOf("base,optimism"),
      problemOf("ethereum"),
      problemOf("base,base"),
      problemOf("base="),
      problemOf(url),
      problemOf("base", { BASE_RPC_URL: `wss://rpc.example/${secret}` }),
    ]).toMatchInlineSnapshot(`
      [
        "--fork: none of these networks has its RPC URL in the environment (for example BASE_RPC_URL=https://…)",
        "--fork: none of these networks has its RPC URL in the environment (for example BASE_RPC_URL=https://…)",
        "BASE_RPC_URL: is needed to fork base (for example https://base.example/v2/KEY,https://base-2.example)
      --fork: optimism is not started; started: base, polygon",
        ""ethereum" is not one of base, base-sepolia, optimism, optimism-sepolia, polygon",
        "names base twice",
        "has nothing after base=",
        "a URL needs the name of its network before it",
        "BASE_RPC_URL: is not a URL that begins with https:// or http://; WebSockets are not supported (for example https://base.example/v2/KEY,https://base-2.example)",
      ]
    `);
  });
});
