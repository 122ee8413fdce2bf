import { parseEnv } from "node:util";
import { expect, test } from "vitest";
import { createLocalRpc } from "../../../src/chain/rpc/local-rpc.ts";
import { startCli } from "../../support/cli.ts";
import { runHere } from "../../support/run-here.ts";

/** The lines of `up --env`, and the hash of the newest block of base. */
async function start(...args: string[]): Promise<{ env: NodeJS.Dict<string>; head: unknown }> {
  await using up = await startCli(["up", "--port", "0", "--networks", "base", "--env", ...args]);
  await up.printed(/^FACILITATOR_CONTRACT_MAINNET=0x\w{40}$/m);
  for (const line of up.stdout().trimEnd().split("\n")) expect(line).toMatch(/^[A-Z0-9_]+=\S+$/);
  const env = parseEnv(up.stdout());
  const head = await createLocalRpc(env.BASE_RPC_URL ?? "").request("eth_getBlockByNumber", "latest", false);
  return { env, head: Reflect.get(Object(head), "hash") };
}

test("up --env prints what a shop and its buyer need, and nothing else; with --seed, the same chain again", async () => {
  const [first, second] = [await start("--seed", "7"), await start("--seed", "7")];
  expect(new Set(Object.keys(first.env))).toEqual(
    new Set([
      "X402_FACILITATOR_URL",
      "X402_API_KEY",
      "X402_NETWORK",
      "X402_CAIP2",
      "X402_PAY_TO",
      "X402_ASSET",
      "X402_PRIVATE_KEY",
      "PAYER_PRIVATE_KEY",
      "BASE_RPC_URL",
      "FACILITATOR_CONTRACT_MAINNET",
    ]),
  );
  expect(first.env.X402_PAY_TO).toBe(first.env.FACILITATOR_CONTRACT_MAINNET);
  // By the names that the judge gives them.
  expect(first.env).toMatchObject({ X402_NETWORK: "base", X402_CAIP2: "eip155:8453" });
  expect(first.head).toBe(second.head);
});

test("what goes by the clock takes no seed, and one kind of output is printed", async () => {
  const { code, stderr } = await runHere(["up", "--seed", "1", "--fork", "base=x.gz", "--env", "--json"], {});
  expect(code).toBe(2);
  expect(stderr).toContain("--seed: a fork goes by the clock, so its runs cannot be repeated");
  expect(stderr).toContain("--env: prints lines, and --json one line of JSON: take one of them");
});
