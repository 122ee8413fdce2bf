import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Role, roles } from "../../../src/chain/deploy/contract-state.ts";
import { hasRole as hasRoleCall } from "../../../src/chain/views.ts";
import type { LocalNode } from "../../../src/harness/nodes/nodes.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { create2Deployer, create2DeployerCode } from "../../../src/protocol/create2.ts";
import type { Address, Hex } from "../../../src/protocol/hex.ts";
import { accountOf, keyOf } from "../../support/key-accounts.ts";
import { type Outcome, runHere } from "../../support/run-here.ts";
import { setBalance, startBareChains } from "../../support/serve/bare-chain.ts";
import { makeDirectory, runCommand, startCommand, type Variables } from "../../support/serve/command.ts";
import { forwardingTo, startStubNode } from "../../support/stub-node.ts";

const deployer = accountOf("deployer").address;
const operator = accountOf("operator").address;
const other = accountOf("other operator").address;
const ether = 10n ** 18n;

let chains: Awaited<ReturnType<typeof startBareChains<"base" | "polygon" | "base-sepolia">>>;
let base: LocalNode;
let keys: Variables;
beforeAll(async () => {
  chains = await startBareChains(["base", "polygon", "base-sepolia"]);
  base = chains.nodes.base;
  for (const node of Object.values(chains.nodes)) await setBalance(node, deployer, ether);
  keys = {
    BASE_RPC_URL: base.rpcUrl,
    POLYGON_RPC_URL: chains.nodes.polygon.rpcUrl,
    BASE_SEPOLIA_RPC_URL: chains.nodes["base-sepolia"].rpcUrl,
    DEPLOYER_PRIVATE_KEY: keyOf("deployer"),
    OPERATOR_PRIVATE_KEY: keyOf("operator"),
  };
});
afterAll(() => chains.stop());

const run = (args: string, changes: Variables = {}) =>
  runCommand(["deploy", ...args.split(" ")], { ...keys, ...changes });

/** The same within this process, which is faster. */
const call = (args: string, changes: Variables = {}) =>
  runHere(["deploy", ...args.split(" ")], { ...keys, ...changes });

/** The output for a person, without the parts that differ from run to run, or with the contract's code. */
function shown({ stdout, stderr }: Outcome): string {
  const known: readonly string[] = [deployer, operator, other];
  return `\n${stdout}${stderr}`
    .replace(/(gas +)[\d,]+ at .*/g, "$1…")
    .replace(/(cost +)\S.*/g, "$1…")
    .replace(/(which has )[\d.]+ \w+/g, "$1…")
    .replace(/\b0x[0-9a-fA-F]{40}\b/g, (address) => (known.includes(address) ? address : "0xCONTRACT"));
}

async function codeAt(node: LocalNode, address: string): Promise<unknown> {
  return node.request("eth_getCode", address, "latest");
}

async function transactionsOf(account: Address): Promise<number> {
  return Number(await base.request("eth_getTransactionCount", account, "latest"));
}

async function hasRole(contract: Address, role: Role, account: Address): Promise<boolean> {
  const answer = await base.request(
    "eth_call",
    { to: contract, data: hasRoleCall(contract, roles[role], account).data },
    "latest",
  );
  return BigInt(answer as Hex) === 1n;
}

/** Deploys a contract of its own for a test, told apart by the admin's delay. */
async function deployWith(adminDelay: number): Promise<Address> {
  const { stdout } = await call(`--network base --yes --json --admin-delay ${adminDelay}`);
  return JSON.parse(stdout).contract;
}

describe("a contract that is not there yet", () => {
  test("a dry run prints what would be sent, and sends nothing", async () => {
    const outcome = await run("--network base --dry-run");
    expect(outcome.code).toBe(0);
    expect(shown(outcome)).toMatchInlineSnapshot(`
      "
      The facilitator contract on base (chain 8453)

        contract     0xCONTRACT
        admin        0x5B5aE611c4d77F43e643D19c4774fb3b9A2Eb613
        admin delay  2 days
        operators    0x7D47eB18134a43d7B3109FC795f648A4f4c72840
        recoverer    none
        pauser       0x5B5aE611c4d77F43e643D19c4774fb3b9A2Eb613
        salt         0x12a40fefc6590d700c6eb2346e1a6554808a4219b736e1b4808bbb8e861adbf2
        sent by      0x5B5aE611c4d77F43e643D19c4774fb3b9A2Eb613, which has …
        gas          …
        cost         …

      The address follows from the admin, its delay, the operators, the recoverer and the pauser, as they are here.
      The same ones give the same address on optimism and polygon; change operators after deploying, not here:
        npx --no-install x402-kit deploy --network optimism --admin 0x5B5aE611c4d77F43e643D19c4774fb3b9A2Eb613 --admin-delay 172800 --operators 0x7D47eB18134a43d7B3109FC795f648A4f4c72840 --recoverer none --pauser 0x5B5aE611c4d77F43e643D19c4774fb3b9A2Eb613
        npx --no-install x402-kit deploy --network polygon --admin 0x5B5aE611c4d77F43e643D19c4774fb3b9A2Eb613 --admin-delay 172800 --operators 0x7D47eB18134a43d7B3109FC795f648A4f4c72840 --recoverer none --pauser 0x5B5aE611c4d77F43e643D19c4774fb3b9A2Eb613

      Dry run: nothing was sent.
      "
    `);
    expect(await transactionsOf(deployer)).toBe(0);
  });

  test("without a terminal to ask at, nothing is sent without --yes", async () => {
    const { code, stderr } = await run("--network base");
    expect(code).toBe(1);
    expect(stderr).toMatchInlineSnapshot(`
      "x402-kit deploy: Nothing was sent: there is no terminal to ask at
        Add --yes to send it.
      "
    `);
    expect(await transactionsOf(deployer)).toBe(0);
    await base.request("anvil_setBalance", deployer, "0x0");
    const unfunded = await call("--network base");
    await base.request("anvil_setBalance", deployer, "0x56bc75e2d63100000");
    expect(unfunded.stderr).toMatch(
      /no terminal to ask at\n +0x\w+ has no ETH to pay for it: fund it first\.\n/,
    );
  });

  test("has one address on the mainnets, and another on the test networks; the second run changes nothing", async () => {
    const outcome = await run("--network base --yes");
    expect(outcome.code).toBe(0);
    const line = /^FACILITATOR_CONTRACT_MAINNET=(0x\w{40})$/m.exec(outcome.stdout);
    const contract = line?.[1] as Address;
    expect(await hasRole(contract, "operator", operator)).toBe(true);
    expect(await hasRole(contract, "operator", deployer)).toBe(false);

    const polygon = await run("--network polygon --yes");
    expect(polygon.stdout).toContain(`\nFACILITATOR_CONTRACT_MAINNET=${contract}\n`);
    expect(await codeAt(chains.nodes.polygon, contract)).toBe(await codeAt(base, contract));
    const sepolia = await run("--network base-sepolia --yes");
    const testContract = /^FACILITATOR_CONTRACT_TESTNET=(0x\w{40})$/m.exec(sepolia.stdout)?.[1];
    expect(testContract).not.toBe(contract);
    expect(await codeAt(chains.nodes["base-sepolia"], testContract ?? "")).toBe(await codeAt(base, contract));

    const sent = await transactionsOf(deployer);
    const again = await run("--network base --yes", { FACILITATOR_CONTRACT_MAINNET: contract.toLowerCase() });
    expect(again.code).toBe(0);
    expect(again.stdout).toMatch(/ is in place on base, .*\n\nNothing was to be done\.\n/s);
    expect(again.stdout).toContain(`\nFACILITATOR_CONTRACT_MAINNET=${contract}\n`);
    expect(await transactionsOf(deployer)).toBe(sent);
  });

  test("for scripts there is one line of JSON, of what is planned, was done, and is in place", async () => {
    const args = `--network base --json --recoverer ${other} --pauser none`;
    const states = [];
    for (const how of ["--dry-run", "--yes", "--yes"]) {
      const { stdout, stderr } = await call(`${args} ${how}`);
      expect(stderr).toBe("");
      states.push(JSON.parse(stdout));
    }
    const [planned, deployed, inPlace] = states;
    expect(planned).toMatchObject({
      network: "base",
      chainId: 8453,
      state: "planned",
      variable: "FACILITATOR_CONTRACT_MAINNET",
      arguments: {
        admin: deployer,
        adminDelay: 172_800,
        operators: [operator],
        recoverer: other,
        pauser: null,
      },
      cost: { gas: expect.stringMatching(/^5\d{6}$/), highest: expect.stringMatching(/^\d+$/) },
    });
    expect(deployed).toMatchObject({
      state: "deployed",
      contract: planned.contract,
      transaction: { hash: expect.stringMatching(/^0x[0-9a-f]{64}$/) },
    });
    expect(inPlace).toMatchObject({
      state: "in place",
      contract: planned.contract,
      admin: deployer,
      roles: [
        { role: "operator", account: operator, holds: true },
        { role: "recoverer", account: other, holds: true },
      ],
    });
  });
});

describe("operators of a contract that stands", () => {
  test("are granted and revoked once; the next time there is nothing to do", async () => {
    const FACILITATOR_CONTRACT_MAINNET = await deployWith(1);
    const change = (args: string) => call(`--network base ${args}`, { FACILITATOR_CONTRACT_MAINNET });

    const dry = await change(`--grant-operator ${other} --dry-run`);
    expect(shown(dry)).toMatchInlineSnapshot(`
      "
      Operators of the facilitator contract on base (chain 8453)

        contract                                    0xCONTRACT
        admin                                       0x5B5aE611c4d77F43e643D19c4774fb3b9A2Eb613
        0x2e17b19FF5f3B60F5ECff523013677aC711aFf0D  grant the role
        gas                                         …
        cost                                        …

      What the admin has to send, for example from a multi-signature wallet:
        to 0xCONTRACT  data 0x2f2ff15d97667070c54ef182b0f5858b034beac1b6f3089aa2d3188bb1e8929f4fa9b9290000000000000000000000002e17b19ff5f3b60f5ecff523013677ac711aff0d

      Dry run: nothing was sent.
      "
    `);
    expect(await hasRole(FACILITATOR_CONTRACT_MAINNET, "operator", other)).toBe(false);

    const both = await change(`--grant-operator ${other} --revoke-operator ${operator} --yes`);
    expect(both.stdout).toMatch(/^Changed by 0x[0-9a-f]{64}, 0x[0-9a-f]{64}\.$/m);
    expect(await hasRole(FACILITATOR_CONTRACT_MAINNET, "operator", other)).toBe(true);
    expect(await hasRole(FACILITATOR_CONTRACT_MAINNET, "operator", operator)).toBe(false);

    const sent = await transactionsOf(deployer);
    const again = await change(`--grant-operator ${other} --revoke-operator ${operator} --yes`);
    expect(again.code).toBe(0);
    expect(again.stdout).toMatch(
      new RegExp(`${other} +is one already\n +${operator} +is none already\n\nNothing was`),
    );
    expect(await transactionsOf(deployer)).toBe(sent);
  });

  test("are for the admin to change; every other account gets the call that the admin has to send", async () => {
    const contract = await deployWith(2);
    const change = `--network base --contract ${contract} --grant-operator ${other}`;
    const { code, stdout, stderr } = await call(`${change} --yes`, {
      DEPLOYER_PRIVATE_KEY: keyOf("operator"),
    });
    expect(code).toBe(1);
    expect(stderr).toContain(`Only the admin, ${deployer}, may change operators; nothing was sent`);

    const [, to, data] = /to (0x\w+) {2}data (0x\w+)/.exec(stdout) ?? [];
    await base.request("anvil_impersonateAccount", deployer);
    await base.request("eth_sendTransaction", { from: deployer, to, data });
    await base.request("evm_mine");
    await base.request("anvil_stopImpersonatingAccount", deployer);
    expect(await hasRole(contract, "operator", other)).toBe(true);
    expect((await call(`${change} --dry-run`, { DEPLOYER_PRIVATE_KEY: "" })).stdout).toContain(
      "is one already",
    );
  });

  test("that have changed since are shown where the contract is found in place", async () => {
    const contract = await deployWith(3);
    await call(`--network base --contract ${contract} --revoke-operator ${operator} --yes`);
    const { code, stdout } = await call("--network base --yes --admin-delay 3");
    expect(code).toBe(0);
    expect(stdout).toContain(`operator     ${operator} does not hold the role any more`);
  });

  test("cannot be changed where there is no contract", async () => {
    const { code, stderr } = await call(`--network base --contract ${other} --grant-operator ${other} --yes`);
    expect(code).toBe(1);
    expect(stderr).toContain(`There is no facilitator contract at ${other} on base`);
  });
});

describe("is refused, and nothing is sent", () => {
  const never = { BASE_RPC_URL: "https://rpc.example.invalid/secret-of-the-url" };
  const published = harnessAccounts.admin;

  test.each<[string, string, Variables, string]>([
    [
      "a published key where the chain is not on this machine",
      "--network base --yes",
      { ...never, DEPLOYER_PRIVATE_KEY: published.privateKey },
      `DEPLOYER_PRIVATE_KEY: ${published.address} is the account of a published test key, which anyone can sign with`,
    ],
    [
      "a role for a published account there",
      `--network base --yes --pauser ${published.address}`,
      never,
      `--pauser: ${published.address} is the account of a published test key`,
    ],
    [
      "a new operator with a published key there",
      `--network base --yes --contract ${other} --grant-operator ${published.address}`,
      never,
      `--grant-operator: ${published.address} is the account of a published test key`,
    ],
    [
      "another address than the one that is configured",
      "--network base --yes",
      { FACILITATOR_CONTRACT_MAINNET: other },
      `FACILITATOR_CONTRACT_MAINNET: is ${other}, but these arguments give 0x`,
    ],
    [
      "a contract without operators",
      "--network base --yes",
      { OPERATOR_PRIVATE_KEY: "" },
      "--operators: is needed, or OPERATOR_PRIVATE_KEY, or OPERATOR_ADDRESS: who may settle",
    ],
    [
      "sending without a key",
      "--network base --yes",
      { DEPLOYER_PRIVATE_KEY: "" },
      "DEPLOYER_PRIVATE_KEY: is needed to send; --dry-run can do without",
    ],
    [
      "an RPC that is missing",
      "--network optimism --yes",
      {},
      "OPTIMISM_RPC_URL: is needed to deploy on optimism",
    ],
    ["an RPC that does not answer", "--network base --yes", never, "No RPC endpoint of base answers"],
    [
      "a mistyped address",
      `--network base --yes --admin ${other.replace(/[a-f]/, (digit) => digit.toUpperCase())}`,
      {},
      "--admin: has a wrong checksum (EIP-55)",
    ],
    ["JSON that would have to ask", "--network base --json", {}, "--json: needs --yes or --dry-run"],
    [
      "an admin beside a change of operators",
      `--network base --yes --grant-operator ${other} --admin ${other}`,
      {},
      "--admin: is for a new contract, not for changing operators",
    ],
  ])("%s", async (_name, args, changes, problem) => {
    const sent = await transactionsOf(deployer);
    const { code, stdout, stderr } = await call(args, changes);
    // A node that does not answer is no mistake of the command line.
    expect(code).toBe(problem.startsWith("No RPC") ? 1 : 2);
    expect(stderr).toContain(problem);
    expect(`${stdout}${stderr}`).not.toContain("secret-of-the-url");
    expect(`${stdout}${stderr}`).not.toContain(keyOf("deployer").slice(2));
    expect(await transactionsOf(deployer)).toBe(sent);
  });

  test("an RPC of another chain", async () => {
    const { stderr } = await call("--network base --yes", { BASE_RPC_URL: chains.nodes.polygon.rpcUrl });
    expect(stderr).toContain("The RPC serves chain 137, but base is chain 8453");
  });

  test("an account with too little money", async () => {
    await setBalance(base, other, 1_000n);
    const { code, stderr } = await call("--network base --yes --admin-delay 4", {
      DEPLOYER_PRIVATE_KEY: keyOf("other operator"),
    });
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /has too little to pay for the transaction; nothing was sent\n {2}It has 0\.\d+ ETH; send it/,
    );
  });

  test("a chain without the CREATE2 deployer, with what to do about it", async () => {
    await base.request("anvil_setCode", create2Deployer, "0x");
    const { code, stderr } = await call("--network base --yes --admin-delay 5");
    await base.request("anvil_setCode", create2Deployer, create2DeployerCode);
    expect(code).toBe(1);
    expect(stderr).toMatchInlineSnapshot(`
      "x402-kit deploy: base cannot be deployed to
        The CREATE2 deployer 0x4e59b44847b379578588920cA78FbF26c0B4956C is not on this chain; with it the contract has the same address everywhere.
        Anyone can put it there, as https://github.com/Arachnid/deterministic-deployment-proxy describes.
        A local anvil has it, unless it runs with --disable-default-create2-deployer.
      "
    `);
  });

  test("a second transaction while one is under way", async () => {
    const release = await chains.hold("base");
    await base.request("anvil_impersonateAccount", deployer);
    await base.request("eth_sendTransaction", { from: deployer, to: other, value: "0x1" });
    const { code, stderr } = await call("--network base --yes --admin-delay 6");
    await release();
    expect(code).toBe(1);
    expect(stderr).toContain(`${deployer} has 1 transaction under way; nothing was sent`);
  });
});

describe("once it is sent, it is followed up", () => {
  test("where the answer to it is lost", async () => {
    let lost = 0;
    const forward = forwardingTo(base.rpcUrl);
    const node = await startStubNode(async (calls, response, body) => {
      const isSending = calls.some(({ method }) => method === "eth_sendRawTransaction");
      if (!isSending) return forward(calls, response, body);
      lost++;
      await fetch(base.rpcUrl, { method: "POST", body, headers: { "content-type": "application/json" } });
      response.socket?.resetAndDestroy();
    });
    const { code, stdout } = await call("--network base --yes --json --admin-delay 7", {
      BASE_RPC_URL: node.url,
    });
    await node.stop();
    expect(lost).toBeGreaterThan(0);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ state: "deployed" });
  });

  test("and Ctrl-C tells by which hash it can be found", async () => {
    const release = await chains.hold("base");
    const sent = await transactionsOf(deployer);
    await using directory = await makeDirectory();
    const args = ["deploy", "--network", "base", "--yes", "--admin-delay", "8"];
    await using command = startCommand(args, keys, directory.path);
    while (Number(await base.request("eth_getTransactionCount", deployer, "pending")) === sent)
      await sleep(10);
    command.kill("SIGINT");
    const { code, stderr } = await command.ended;
    await release();
    expect(code).toBe(1);
    const hash = /The transaction (0x[0-9a-f]{64}) was sent, and was not mined when you stopped waiting/.exec(
      stderr,
    );
    expect(await base.request("eth_getTransactionReceipt", hash?.[1])).toMatchObject({ status: "0x1" });
    expect((await call("--network base --dry-run --admin-delay 8")).stdout).toContain("in place on base");
  });
});

test("published test keys are accepted on this machine, and it is said", async () => {
  const { address, privateKey } = harnessAccounts.admin;
  await setBalance(base, address, ether);
  const { code, stdout } = await run("--network base --yes", { DEPLOYER_PRIVATE_KEY: privateKey });
  expect(code).toBe(0);
  expect(stdout).toContain(`Published test keys are accepted because the RPC is on this machine: ${address}`);
});
