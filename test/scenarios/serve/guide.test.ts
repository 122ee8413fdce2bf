import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { resolveFacilitatorContracts } from "../../../src/harness/setup/addresses.ts";
import { startChains } from "../../../src/harness/setup/chains.ts";
import { buildPaymentRequest } from "../../../src/methods/exact-eip3009/eip3009-payload.ts";
import type { Address } from "../../../src/protocol/hex.ts";
import { networks } from "../../../src/protocol/networks.ts";
import { signAs } from "../../../src/published/sign-as.ts";
import { requestJson } from "../../../src/util/http-client.ts";
import { accountOf, keyOf } from "../../support/key-accounts.ts";
import { runningChain } from "../../support/running-chain.ts";
import { makeDirectory, startCommand, type Variables } from "../../support/serve/command.ts";
import { deployer, operator, pepper } from "../../support/serve/deployed-chains.ts";

const guide = readFileSync(new URL("../../../docs/guides/operators.md", import.meta.url), "utf8");

/** The commands of a section, as they stand there. */
function commandsOf(heading: string): string[] {
  const section = guide.split(/^## /m).find((part) => part.startsWith(heading)) ?? "";
  return section.split("\n").filter((line) => line.includes("npx x402-facilitator-kit "));
}

/** A command line as a shell takes it apart: its variables, and its arguments. */
function takeApart(line: string): { variables: Variables; args: string[] } {
  const words = [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
  const start = words.indexOf("npx");
  const variables = words.slice(0, start).map((word) => word.split("=") as [string, string]);
  return { variables: Object.fromEntries(variables), args: words.slice(start + 2) };
}

// Ten processes, one after the other: patience for a loaded machine.
test("the way from keys to the first payment is as the guide for operators says", {
  timeout: 120_000,
}, async () => {
  await using chains = await startChains({
    networks: ["base-sepolia"],
    facilitatorContracts: resolveFacilitatorContracts(),
  });
  const chain = runningChain(chains, "base-sepolia");
  for (const account of [deployer, operator]) await chain.setBalance(account, 10n ** 16n);
  const wallet = accountOf("the wallet of the shop").address;
  await using directory = await makeDirectory();
  const env = {
    BASE_SEPOLIA_RPC_URL: chain.rpcUrl,
    OPERATOR_PRIVATE_KEY: keyOf("operator"),
    API_KEY_PEPPER: pepper,
    PORT: "0",
  };
  const writeEnv = (more: Variables = {}) => {
    const lines = Object.entries({ ...env, ...more }).map(([name, value]) => `${name}=${value}\n`);
    return writeFile(join(directory.path, ".env"), lines.join(""), { mode: 0o600 });
  };
  await writeEnv();

  let contract: Address | undefined;
  let key: string | undefined;
  const commands = commandsOf("From keys to the first payment").map(takeApart);
  expect(commands.map(({ args }) => args.slice(0, 2).join(" "))).toEqual([
    "deploy --network",
    "deploy --network",
    "migrate",
    "doctor",
    "org create",
    "org set-recipient",
    "key create",
    "serve",
  ]);
  for (const { variables, args } of commands) {
    if (args[0] === "serve") break;
    const words = args.map((word) => (word === "0xYOUR_WALLET" ? wallet : word));
    // There is no terminal here to confirm at.
    if (words[0] === "deploy" && !words.includes("--dry-run")) words.push("--yes");
    const given = {
      // The oldest Node calls its SQLite experimental.
      NODE_OPTIONS: "--disable-warning=ExperimentalWarning",
      ...(variables.DEPLOYER_PRIVATE_KEY !== undefined && { DEPLOYER_PRIVATE_KEY: keyOf("deployer") }),
    };
    const { code, stdout, stderr } = await startCommand(words, given, directory.path).ended;
    expect(`${words.join(" ")}: ${code} ${stderr}`).toBe(`${words.join(" ")}: 0 `);

    const line = /^FACILITATOR_CONTRACT_TESTNET=(0x\w{40})$/m.exec(stdout)?.[1];
    if (line !== undefined) {
      contract = line as Address;
      await writeEnv({ FACILITATOR_CONTRACT_TESTNET: contract });
    }
    key ??= /x4k_\w+_\w+/.exec(stdout)?.[0];
  }
  if (contract === undefined || key === undefined) throw new Error("no contract or no key was printed");

  await using command = startCommand(["serve"], {}, directory.path);
  const { url } = JSON.parse(await command.logged(/"serving"/));
  const payment = await signAs("funded", {
    asset: chain.asset,
    chainId: chain.network.chainId,
    to: contract,
    value: 10_000n,
    validBefore: (await chain.now()) + 600n,
  });
  const body = buildPaymentRequest({
    x402Version: 2,
    network: networks["base-sepolia"],
    asset: chain.asset,
    payTo: contract,
    amount: 10_000n,
    resource: "https://merchant.example/resource",
    ...payment,
  });
  const headers = { authorization: key };
  expect((await requestJson(`${url}/settle`, { method: "POST", headers, body })).body).toMatchObject({
    success: true,
  });
  command.kill("SIGTERM");
  expect((await command.ended).code).toBe(0);
});
