import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { resolveFacilitatorContracts } from "../../../src/harness/setup/addresses.ts";
import { startChains } from "../../../src/harness/setup/chains.ts";
import { buildPaymentRequest } from "../../../src/methods/exact-eip3009/eip3009-method.ts";
import type { Address } from "../../../src/protocol/hex.ts";
import { networks } from "../../../src/protocol/networks.ts";
import { accountOf, keyOf } from "../../support/key-accounts.ts";
import { findFreePort } from "../../support/postgres.ts";
import { runningChain } from "../../support/running-chain.ts";
import { makeDirectory, startCommand, type Variables } from "../../support/serve/command.ts";
import { deployer, operator, pepper } from "../../support/serve/deployed-chains.ts";
import { signAs } from "../../support/sign-as.ts";

const read = (name: string) =>
  readFileSync(new URL(`../../../docs/guides/${name}.md`, import.meta.url), "utf8");
const guide = read("operators");

/** The commands in the guide to operation. */
const operationCommands = [...read("operations").matchAll(/^```sh\n(.*?)^```$/gms)]
  .flatMap(([, block = ""]) => block.split("\n"))
  .filter((line) => line.startsWith("x402-kit "));

/** The commands of a section, as they stand there. */
function commandsOf(heading: string): string[] {
  const section = guide.split(/^## /m).find((part) => part.startsWith(heading)) ?? "";
  return section.split("\n").filter((line) => line.includes("npx --no-install x402-kit "));
}

/**
 * The output of the guide's lines for secrets, if there is an openssl; otherwise as many random bytes, since the rest of the guide
 * is to be run anywhere.
 */
function secretsOf(text: string): string[] {
  const lines = [...text.matchAll(/^(openssl .*?) +# [A-Z_]+/gm)].map(([, command = ""]) =>
    command.split(" "),
  );
  return lines.map(([program = "", ...args]) => {
    const { error, stdout } = spawnSync(program, args, { encoding: "utf8" });
    return error === undefined ? stdout.trim() : randomBytes(32).toString("hex");
  });
}

/** A command line as a shell takes it apart: its variables, and its arguments. */
function takeApart(line: string): { variables: Variables; args: string[] } {
  const words = [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
  const start = words.indexOf("npx");
  const variables = words.slice(0, start).map((word) => word.split("=") as [string, string]);
  return { variables: Object.fromEntries(variables), args: words.slice(start + 3) };
}

/** The oldest Node calls its SQLite experimental. */
const quiet = { NODE_OPTIONS: "--disable-warning=ExperimentalWarning" };

/** Runs what the guide to operation has one type at a service that runs; `id` is that of a settlement. */
async function runOperationCommands(id: string, directory: string, variables: Variables): Promise<void> {
  const told: [start: string, answer: RegExp][] = [
    ["settlements archive --before", /^There is nothing to archive/],
    ["logs", /settle +base-sepolia.*settled/],
    ["why", /^settle +settled/m],
    ["settlements show --id", new RegExp(id)],
  ];
  expect(operationCommands.length).toBe(told.length);
  for (const [index, [start, answer]] of told.entries()) {
    const words = (operationCommands[index] ?? "")
      .replace(/ +#.*$/, "")
      .split(" ")
      .slice(1);
    expect(words.join(" ").startsWith(start), words.join(" ")).toBe(true);
    // Without an end of its own the command would follow for ever.
    const args = words
      .map((word) => (word === "0x5b7845…" ? id : word))
      .filter((word) => word !== "--follow");
    const { code, stdout, stderr } = await startCommand(args, { ...quiet, ...variables }, directory).ended;
    expect(`${stdout}${stderr}`, args.join(" ")).toMatch(answer);
    expect(code, stderr).toBe(0);
  }
}

// Sixteen processes, one after the other: patience for a loaded machine.
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
  const secrets = secretsOf(guide);
  expect(secrets).toEqual(Array(3).fill(expect.stringMatching(/^[0-9a-f]{64}$/)));
  const env = {
    BASE_SEPOLIA_RPC_URL: chain.rpcUrl,
    OPERATOR_PRIVATE_KEY: keyOf("operator"),
    API_KEY_PEPPER: secrets[2] ?? "",
    PORT: "0",
    ADMIN_PORT: String(await findFreePort()),
    ADMIN_TOKEN: pepper,
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
      ...quiet,
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
  const response = await fetch(`${url}/settle`, {
    method: "POST",
    headers: { authorization: key, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  expect(await response.json()).toMatchObject({ success: true });
  const id = response.headers.get("location")?.split("/").at(-1) ?? "";

  await runOperationCommands(id, directory.path, {
    X402_KIT_URL: `http://127.0.0.1:${env.ADMIN_PORT}`,
    ADMIN_TOKEN: env.ADMIN_TOKEN,
  });
  command.kill("SIGTERM");
  expect((await command.ended).code).toBe(0);

  // Nothing uses the old operator any more.
  const [change = ""] = commandsOf("Deployment");
  const replaced: Record<string, string> = {
    "0xNEW": accountOf("the next operator").address,
    "0xOLD": operator,
    base: "base-sepolia",
  };
  const args = takeApart(change).args.map((word) => replaced[word] ?? word);
  expect(args.slice(0, 4)).toEqual(["deploy", "--network", "base-sepolia", "--grant-operator"]);
  const admin = { ...quiet, DEPLOYER_PRIVATE_KEY: keyOf("deployer") };
  const { code, stderr } = await startCommand([...args, "--yes"], admin, directory.path).ended;
  expect(`${code} ${stderr}`).toBe("0 ");
});
