import { randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { rename, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { HarnessChain } from "../../../src/harness/setup/prepare-chain.ts";
import { createLedger } from "../../../src/ledger/create-ledger.ts";
import { openDatabase } from "../../../src/ledger/database/open-database.ts";
import { exactProxyAddress } from "../../../src/methods/permit2/permit.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import type { Address, Hex } from "../../../src/protocol/hex.ts";
import { type JsonResponse, requestJson } from "../../../src/util/http-client.ts";
import { accountOf, keyOf } from "../../support/key-accounts.ts";
import { altering } from "../../support/misbehaviour.ts";
import { problemsIn, runHere } from "../../support/run-here.ts";
import {
  makeDirectory,
  type RunningCommand,
  startCommand,
  type Variables,
} from "../../support/serve/command.ts";
import { type DeployedChains, operator, pepper } from "../../support/serve/deployed-chains.ts";
import { signPayment, startDeployedShop } from "../../support/serve/shop.ts";
import { startSigner } from "../../support/serve/signer-server.ts";
import { forwardingTo, startStubNode } from "../../support/stub-node.ts";
import { signInWay } from "../../support/ways.ts";

let deployed: DeployedChains<"base">;
let chain: HarnessChain;
let key: string;
beforeAll(async () => {
  ({ deployed, chain, key } = await startDeployedShop());
});
afterAll(() => deployed.stop());

type Line = Record<string, unknown> & { level: number; msg: string };

/** Starts `serve` and waits until it serves; gives where. */
async function startServing(
  changes: Variables = {},
  cwd = "/",
  options: readonly string[] = [],
): Promise<{ command: RunningCommand; url: string }> {
  const command = startCommand(
    ["serve", ...options],
    { ...deployed.variables, CONFIRMATIONS: "base=1", DRAIN_DELAY_MS: "0", ...changes },
    cwd,
  );
  const line: Line = JSON.parse(await command.logged(/"serving"/));
  return { command, url: String(line.url) };
}

function linesOf(stderr: string): Line[] {
  return stderr
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

/** Gives an account that has sent nothing its role and gas money. */
async function makeOperator(name: string): Promise<Address> {
  const { address } = accountOf(name);
  await chain.setBalance(address, 10n ** 18n);
  await runHere(["deploy", "--network", "base", "--grant-operator", address, "--yes"], {
    ...deployed.variables,
    DEPLOYER_PRIVATE_KEY: keyOf("deployer"),
  });
  return address;
}

async function pay(url: string, body: unknown): Promise<JsonResponse> {
  return requestJson(`${url}/settle`, { method: "POST", headers: { authorization: key }, body });
}

async function openAndWait(url: string): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  socket.on("error", () => {});
  await once(socket, "connect");
  return socket.resume();
}

async function recipientBalance(): Promise<bigint> {
  const data = `0x70a08231${harnessAccounts.recipient.address.slice(2).padStart(64, "0")}`;
  return BigInt((await chain.node.request("eth_call", { to: chain.asset.address, data }, "latest")) as Hex);
}

test("offers the authorizer of a network before that of all", async () => {
  const { command, url } = await startServing({
    PAY_TO: "recipients",
    AUTHORIZER_PRIVATE_KEY: `${keyOf("authorizer")}, base=${keyOf("authorizer of base")}`,
  });
  await using _ = command;
  const supported = await requestJson(`${url}/supported`, { headers: { authorization: key } });
  expect(supported.body).toMatchObject({
    kinds: expect.arrayContaining([
      expect.objectContaining({
        scheme: "batch-settlement",
        extra: expect.objectContaining({ receiverAuthorizer: accountOf("authorizer of base").address }),
      }),
    ]),
  });
});

test("--json prints the URLs once it serves, and nothing else", async () => {
  const { command, url } = await startServing({ METRICS_PORT: "0" }, "/", ["--json"]);
  await using _ = command;
  command.kill("SIGTERM");
  const { code, stdout } = await command.ended;
  expect([code, JSON.parse(stdout)]).toEqual([
    0,
    { url, metrics: expect.stringMatching(/^http:.*\/metrics$/) },
  ]);
});

describe("from deployment to payment", () => {
  test("a payment settles, and SIGTERM ends everything with exit code 0", async () => {
    const before = await recipientBalance();
    const { command, url } = await startServing();
    await using _ = command;
    expect(await pay(url, await signPayment(deployed))).toMatchObject({
      status: 200,
      body: { success: true, network: "base", transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/) },
    });
    expect(await recipientBalance()).toBe(before + 10_000n);
    expect(command.descendants()).toEqual([]);

    command.kill("SIGTERM");
    const { code, stdout, stderr } = await command.ended;
    expect(code).toBe(0);
    expect(stdout).toBe("");
    await expect(requestJson(url.replace("/v1", "/livez"))).rejects.toThrow();
    expect(linesOf(stderr).map(({ msg }) => msg)).toEqual([
      expect.stringContaining("RPC endpoints: there is one"),
      expect.stringContaining("Server listening at"),
      "network ready",
      "serving",
      "transaction signed",
      "transaction sent",
      "transaction mined",
      "payment settled",
      "request",
      "shutting down: settles under way are finished",
      "ended",
    ]);
    expect(linesOf(stderr)[2]).toMatchObject({
      network: "base",
      chainId: 8453,
      facilitatorContract: deployed.contract,
      operators: [operator],
      rpcEndpoints: 1,
      confirmations: 1,
    });
  });

  test("SIGTERM in the middle of settles: readiness says no, what was taken is finished, and each is paid once", async () => {
    const before = await recipientBalance();
    const { command, url } = await startServing({ DRAIN_DELAY_MS: "2000" });
    await using _ = command;
    const idle = connect(Number(new URL(url).port), "127.0.0.1");
    idle.on("error", () => {});
    const bodies = await Promise.all(Array.from({ length: 30 }, () => signPayment(deployed)));
    const isReady = async () =>
      (await requestJson(url.replace("/v1", "/readyz"))).status === 200 ? "ready" : "not ready";

    await chain.hold();
    const early = bodies.splice(0, 10).map((body) => pay(url, body));
    await untilPending();
    command.kill("SIGTERM");
    const stoppedAt = performance.now();
    // Balancers find out late: until then it serves as ever.
    const late = bodies.splice(0, 10).map((body) => pay(url, body));
    await expect.poll(isReady).toBe("not ready");
    expect((await Promise.race([...early, sleep(50)])) ?? "under way").toBe("under way");
    const isOpen = () =>
      isReady().then(
        () => true,
        () => false,
      );
    await expect.poll(isOpen, { timeout: 20_000 }).toBe(false);
    expect(performance.now() - stoppedAt).toBeGreaterThan(1_900);
    await expect(pay(url, bodies[0])).rejects.toThrow();
    await chain.release();

    for (const answer of await Promise.all([...early, ...late])) {
      expect(answer).toMatchObject({ status: 200, body: { success: true } });
    }
    expect((await command.ended).code).toBe(0);
    expect(await recipientBalance()).toBe(before + 20n * 10_000n);
  });

  test("what cannot be finished in time is answered as under way, and settled by the next start", async () => {
    const before = await recipientBalance();
    const body = await signPayment(deployed);
    await chain.hold();
    const first = await startServing({ DRAIN_DELAY_MS: "0", SHUTDOWN_TIMEOUT_MS: "3000" });
    const waiting = pay(first.url, body);
    await untilPending();
    first.command.kill("SIGTERM");
    expect(await waiting).toMatchObject({ status: 503, body: { success: false } });
    expect((await first.command.ended).code).toBe(0);

    await chain.release();
    const second = await startServing();
    await using _ = second.command;
    expect((await pay(second.url, body)).body).toMatchObject({ success: true });
    expect(await recipientBalance()).toBe(before + 10_000n);
  });

  test("SIGTERM ends it though connections stand open on which nothing comes, on either port", async () => {
    const { command, url } = await startServing({ METRICS_PORT: "0" });
    const metrics: Line = JSON.parse(await command.logged(/"serving metrics"/));
    const idle = await Promise.all([url, String(metrics.url)].map(openAndWait));
    const half = await openAndWait(url);
    half.write("POST /v1/settle HTTP/1.1\r\nhost: localhost\r\n");
    command.kill("SIGTERM");
    expect((await command.ended).code).toBe(0);
    for (const socket of [...idle, half]) socket.destroy();
  });

  test("a second signal ends it at once", async () => {
    const node = await startStubNode(forwardingTo(chain.rpcUrl));
    const { command, url } = await startServing({ BASE_RPC_URL: node.url });
    // From now on the node says nothing, and the payment waits for it.
    let asked = false;
    node.behave(() => {
      asked = true;
    });
    const waiting = pay(url, await signPayment(deployed)).catch(() => "cut off");
    while (!asked) await sleep(5);
    command.kill("SIGTERM");
    await command.logged(/"shutting down: /);
    await sleep(600);
    command.kill("SIGTERM");
    expect((await command.ended).code).toBe(130);
    await waiting;
    await node.stop();
  });

  test("a network that cannot be reached does not keep the others from being served", async () => {
    const { command, url } = await startServing({ OPTIMISM_RPC_URL: "http://127.0.0.1:1/secret-of-the-url" });
    await using _ = command;
    expect((await pay(url, await signPayment(deployed))).body).toMatchObject({ success: true });
    command.kill("SIGINT");
    const { code, stderr } = await command.ended;
    expect(code).toBe(0);
    expect(linesOf(stderr).filter(({ network }) => network === "optimism")).toContainEqual(
      expect.objectContaining({ level: 40, msg: "network not ready yet; trying again" }),
    );
    expect(stderr).not.toContain("secret-of-the-url");
  });

  test("readiness says that one of several RPC URLs serves another chain, while payments go on", async () => {
    const other = await startStubNode(altering(forwardingTo(chain.rpcUrl), "eth_chainId", () => "0x2a"));
    const { command, url } = await startServing({
      BASE_RPC_URL: `${chain.rpcUrl},${chain.rpcUrl}/?second,${other.url}`,
    });
    await using _ = command;
    const { body } = await requestJson(url.replace("/v1", "/readyz"));
    expect(body).toMatchObject({
      networks: { base: { ready: true, detail: expect.stringContaining("serves chain 42") } },
    });
    expect((await pay(url, await signPayment(deployed))).body).toMatchObject({ success: true });
    await other.stop();
  });

  test("with its key behind a remote signer, a payment settles as well", async () => {
    const signer = await startSigner(keyOf("operator"));
    const { command, url } = await startServing({
      OPERATOR_PRIVATE_KEY: "",
      OPERATOR_SIGNER_URL: signer.url,
      OPERATOR_ADDRESS: operator,
    });
    await using _ = command;
    expect((await pay(url, await signPayment(deployed))).body).toMatchObject({ success: true });
    command.kill("SIGTERM");
    const { code, stderr } = await command.ended;
    expect(code).toBe(0);
    expect(stderr).not.toContain("secret-of-the-url");
    await signer.stop();
  });

  test("several operators serve together", async () => {
    const other = await makeOperator("other operator");
    const { command, url } = await startServing({
      OPERATOR_PRIVATE_KEY: `${keyOf("operator")},${keyOf("other operator")}`,
    });
    await using _ = command;
    const ready = JSON.parse(await command.logged(/"network ready"/));
    expect(ready.operators).toEqual([operator, other]);
    const bodies = await Promise.all(Array.from({ length: 6 }, () => signPayment(deployed)));
    for (const answer of await Promise.all(bodies.map((body) => pay(url, body)))) {
      expect(answer.body).toMatchObject({ success: true });
    }
  });

  test("a database file that was moved away makes it not ready and is logged; payments are kept, and found once it is back", async () => {
    const { command, url } = await startServing();
    await using _ = command;
    await command.logged(/"network ready"/);
    const readiness = async () => JSON.stringify((await requestJson(url.replace("/v1", "/readyz"))).body);
    const file = deployed.databaseUrl.slice("sqlite:".length);
    const body = await signPayment(deployed);
    await rename(file, `${file}.moved`);
    await expect.poll(readiness).toContain("The database file was removed or replaced");
    expect(await command.logged(/keeps nothing that is written/)).toContain('"level":50');
    expect((await pay(url, body)).body).toMatchObject({ success: true });
    await rename(`${file}.moved`, file);
    await expect.poll(readiness).toContain('"status":"ready"');
    expect((await pay(url, body)).body).toMatchObject({ errorReason: "invalid_transaction_state" });
  });

  test("a chain without a proxy of x402 is ready and says what it lacks, and payments by EIP-3009 go on", async () => {
    const code = await chain.node.request("eth_getCode", exactProxyAddress, "latest");
    await chain.node.request("anvil_setCode", exactProxyAddress, "0x");
    const { command, url } = await startServing();
    await using _ = command;
    const lack = `there is no proxy of x402 at ${exactProxyAddress}: no payment by Permit2 of scheme exact settles`;
    expect(await command.logged(/"level":40.*Permit2: /)).toContain(lack);
    expect((await requestJson(url.replace("/v1", "/readyz"))).body).toMatchObject({
      ...{ status: "ready", networks: { base: { ready: true, detail: lack } } },
    });
    const { body } = await signInWay(
      { name: "Permit2", method: "permit2", straight: false },
      { chain, contract: deployed.contract, value: 10_000n },
    );
    const refused = { success: false, errorReason: "permit2_proxy_not_deployed", transaction: "" };
    expect((await pay(url, body)).body).toMatchObject(refused);
    expect((await pay(url, await signPayment(deployed))).body).toMatchObject({ success: true });

    await chain.node.request("anvil_setCode", exactProxyAddress, code);
    expect((await pay(url, body)).body).toMatchObject({ success: true });
  });

  async function untilPending(): Promise<void> {
    for (;;) {
      const pending = await chain.node.request("eth_getTransactionCount", operator, "pending");
      const mined = await chain.node.request("eth_getTransactionCount", operator, "latest");
      if (pending !== mined) return;
      await sleep(5);
    }
  }
});

describe("configuration", () => {
  test("comes from .env as well, and the environment has the last word", async () => {
    await using directory = await makeDirectory();
    const { BASE_RPC_URL = "", ...others } = deployed.variables;
    const file = { ...others, BASE_RPC_URL: "http://127.0.0.1:1", HOST: "127.0.0.2", LOG_LEVEL: "debug" };
    const text = Object.entries(file).map(([name, value]) => `${name}='${value}'\n`);
    await writeFile(join(directory.path, ".env"), text.join(""));
    await using command = startCommand(["serve"], { BASE_RPC_URL }, directory.path);
    const line = await command.logged(/"serving"/);
    expect(JSON.parse(line).url).toMatch(/^http:\/\/127\.0\.0\.2:\d+\/v1$/);
    expect(await command.logged(/"network ready"/)).toContain('"network":"base"');
  });

  test("keeps the first variable of a .env with a byte order mark, warns of one that every user can read, and takes secrets from files", async () => {
    await using directory = await makeDirectory();
    const { API_KEY_PEPPER = "", ...others } = deployed.variables;
    const secret = join(directory.path, "pepper");
    await writeFile(secret, `${API_KEY_PEPPER}\n`);
    const env = join(directory.path, ".env");
    await writeFile(env, `\uFEFFAPI_KEY_PEPPER_FILE='${secret}'\n`, { mode: 0o644 });
    await using command = startCommand(["serve"], others, directory.path);
    const { url } = JSON.parse(await command.logged(/"serving"/));
    const warning: Line = JSON.parse(await command.logged(/chmod/));
    expect(warning).toMatchObject({ level: 40, variable: ".env" });
    const body = await signPayment(deployed);
    expect((await pay(url, body)).body).toMatchObject({ success: true });
  });

  test("refuses a misspelt variable, with the likely name, together with everything else", async () => {
    const { code, stderr } = await runHere(["serve", "--migrat"], {
      ...deployed.variables,
      BASE_RPC_URLS: "https://base.example",
      TRUST_PROXY: "0.0.0.0/0",
    });
    expect(code).toBe(2);
    expect(problemsIn(stderr)).toEqual(["--migrat", "TRUST_PROXY", "BASE_RPC_URLS"]);
    expect(stderr).toMatch(/did you mean --migrate\?\n.*\n.*did you mean BASE_RPC_URL\?\n/);
  });

  test("migrates a database when it is told to, and only then", async () => {
    await using directory = await makeDirectory();
    await makeOperator("new operator");
    const variables = {
      ...deployed.variables,
      DATABASE_URL: "sqlite:./new.db",
      OPERATOR_PRIVATE_KEY: keyOf("new operator"),
    };
    const refused = await startCommand(["serve"], variables, directory.path).ended;
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain("npx --no-install x402-kit serve --migrate");

    await using command = startCommand(["serve", "--migrate"], variables, directory.path);
    await command.logged(/"serving"/);
    expect(await command.logged(/brought up to date/)).toContain("0001-initial");
  });
});

describe("does not start", () => {
  const refuse = (changes: Variables) =>
    runHere(["serve"], { ...deployed.variables, LOG_LEVEL: "silent", ...changes });

  test("with a configuration that is wrong, and says everything that is", async () => {
    const { code, stderr } = await refuse({
      API_KEY_PEPPER: "",
      PORT: "http",
      FACILITATOR_CONTRACT_MAINNET: "",
    });
    expect(code).toBe(2);
    expect(problemsIn(stderr)).toEqual(["FACILITATOR_CONTRACT_MAINNET", "API_KEY_PEPPER", "PORT"]);
    expect(stderr).toContain("\nHow it is set up, step by step: docs/guides/operators.md");
  });

  test.each<[string, Variables, string]>([
    [
      "an operator",
      { OPERATOR_PRIVATE_KEY: `${keyOf("operator")},${harnessAccounts.operator.privateKey}` },
      "OPERATOR_PRIVATE_KEY: the 2nd key is a published test key: anyone can sign with it",
    ],
    [
      "a recoverer",
      { RECOVERER_PRIVATE_KEY: "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80" },
      "RECOVERER_PRIVATE_KEY: is a published test key",
    ],
    [
      "a sponsor",
      {
        ...{ SPONSOR_PRIVATE_KEY: harnessAccounts.sponsor.privateKey },
        ...{ MAX_GIFT: "base=0.0001", DAILY_GIFTS: "base=0.01" },
      },
      "SPONSOR_PRIVATE_KEY: is a published test key",
    ],
    [
      "an operator behind a remote signer",
      {
        OPERATOR_PRIVATE_KEY: "",
        OPERATOR_SIGNER_URL: "https://signer.example.invalid",
        OPERATOR_ADDRESS: harnessAccounts.operator.address,
      },
      "OPERATOR_ADDRESS: is a published test key",
    ],
  ])("with a published test key of %s", async (_name, changes, problem) => {
    const { code, stderr } = await refuse(changes);
    expect(code).toBe(2);
    expect(stderr).toContain(problem);
  });

  test("with one of the two limits of gifts", async () => {
    const { code, stderr } = await refuse({
      ...{ SPONSOR_PRIVATE_KEY: keyOf("sponsor"), GAS_SPONSORING: "erc20ApprovalGasSponsoring" },
      DAILY_GIFTS: "base=0.01",
    });
    expect(code).toBe(2);
    expect(stderr).toContain(
      "MAX_GIFT: is needed for base, which DAILY_GIFTS names: without it nothing is given there",
    );
  });

  test("with another contract than ours", async () => {
    const { code, stderr } = await refuse({ FACILITATOR_CONTRACT_MAINNET: operator });
    expect(code).toBe(2);
    expect(problemsIn(stderr)).toEqual(["base"]);
    expect(stderr).toContain(`there is no facilitator contract at ${operator}`);
  });

  test("with another pepper than that of the API keys", async () => {
    const { code, stderr } = await refuse({ API_KEY_PEPPER: randomBytes(32).toString("hex") });
    expect(code).toBe(2);
    expect(problemsIn(stderr)).toEqual(["API_KEY_PEPPER"]);
    expect(stderr).toContain("key accept-pepper");
  });

  test("where another service sends with the operator's key", async () => {
    const other = accountOf("shared operator").address;
    const db = await openDatabase({ url: deployed.databaseUrl });
    await createLedger({ db, instanceId: randomUUID(), now: Date.now }).claims.introduceOperator(
      8453,
      other,
      0,
    );
    await db.destroy();
    await chain.node.request("anvil_setNonce", other, "0x2");
    const { code, stderr } = await refuse({ OPERATOR_PRIVATE_KEY: keyOf("shared operator") });
    expect(code).toBe(2);
    expect(problemsIn(stderr)).toEqual(["base"]);
    expect(stderr).toContain(`operator accept-tx-nonce --network base --operator ${other}\n`);
  });

  test("until `operator accept-tx-nonce` says that it has stopped, which is kept", async () => {
    const shared = accountOf("accepted operator").address;
    const db = await openDatabase({ url: deployed.databaseUrl });
    await createLedger({ db, instanceId: randomUUID(), now: Date.now }).claims.introduceOperator(
      8453,
      shared,
      1,
    );
    await db.destroy();
    await chain.node.request("anvil_setNonce", shared, "0x5");
    const about = ["--network", "base", "--operator", shared];
    const accept = () =>
      runHere(["operator", "accept-tx-nonce", ...about, "--actor", "alice"], deployed.variables);
    expect(await accept()).toMatchObject({
      code: 0,
      stdout: `${shared} goes on at 5 on base; the database was at 1.\n`,
    });
    expect((await accept()).stdout).toContain("Nothing to accept");
    const { stdout } = await runHere(["operator", "show", ...about, "--json"], deployed.variables);
    expect(JSON.parse(stdout)).toEqual({
      network: "base",
      operator: shared,
      nextTxNonce: 5,
      missing: 0,
      changes: [{ at: expect.any(String), actor: "alice", from: 1, to: 5 }],
    });
    const doctor = await runHere(["doctor"], {
      ...deployed.variables,
      OPERATOR_PRIVATE_KEY: keyOf("accepted operator"),
    });
    expect(doctor.stdout).toContain(`${shared} goes on at 5, the chain is at 5`);
    const unknown = ["--network", "base", "--operator", accountOf("unheard of").address];
    const refused = await runHere(["operator", "accept-tx-nonce", ...unknown], deployed.variables);
    expect(refused).toMatchObject({ code: 4, stderr: expect.stringContaining("knows no operator") });
    const elsewhere = ["--network", "polygon", "--operator", shared];
    const wrong = await runHere(["operator", "accept-tx-nonce", ...elsewhere], {
      ...deployed.variables,
      POLYGON_RPC_URL: chain.rpcUrl,
    });
    expect(wrong.stderr).toContain("The RPC serves chain 8453, but polygon is chain 137");
  });

  test("where the operator has transactions that a new database does not know, until they are accepted", async () => {
    const used = await makeOperator("operator of a lost database");
    const variables = { OPERATOR_PRIVATE_KEY: keyOf("operator of a lost database") };
    await chain.node.request("anvil_setNonce", used, "0x5");
    const { code, stderr } = await refuse(variables);
    expect(code).toBe(2);
    expect(stderr).toContain(`base: ${used} has sent 5 transactions, and this database knows none of them`);
    const about = ["--network", "base", "--operator", used];
    expect(stderr).toContain(`operator accept-tx-nonce ${about.join(" ")}`);

    const accepted = await runHere(["operator", "accept-tx-nonce", ...about, "--json"], deployed.variables);
    expect(JSON.parse(accepted.stdout)).toMatchObject({ from: 0, to: 5 });
    const shown = await runHere(["operator", "show", ...about, "--json"], deployed.variables);
    expect(JSON.parse(shown.stdout)).toMatchObject({ nextTxNonce: 5, changes: [{ from: 0, to: 5 }] });
    const { command, url } = await startServing(variables);
    await using _ = command;
    expect(await pay(url, await signPayment(deployed))).toMatchObject({ body: { success: true } });
  });

  test("and `operator show` names the transactions that the node does not know", async () => {
    const lost = accountOf("operator with lost transactions").address;
    const db = await openDatabase({ url: deployed.databaseUrl });
    await createLedger({ db, instanceId: randomUUID(), now: Date.now }).claims.introduceOperator(
      8453,
      lost,
      7,
    );
    await db.destroy();
    await chain.node.request("anvil_setNonce", lost, "0x4");
    const show = (variables: Variables, ...args: string[]) =>
      runHere(["operator", "show", "--network", "base", "--operator", lost, ...args], variables);
    expect((await show(deployed.variables)).stdout).toContain(
      "The node knows only its transactions below txNonce 4: 3 are missing, and serve sends them again.",
    );
    expect(JSON.parse((await show(deployed.variables, "--json")).stdout)).toMatchObject({ missing: 3 });
    const { DATABASE_URL = "" } = deployed.variables;
    const withoutChain = await show({ DATABASE_URL }, "--json");
    expect(JSON.parse(withoutChain.stdout)).toMatchObject({ nextTxNonce: 7, missing: null });
  });

  test("where its port is taken", async () => {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const { code, stderr } = await refuse({ PORT: String(port) });
    server.close();
    expect(code).toBe(1);
    expect(stderr).toContain(`x402-kit serve: The service cannot listen on port ${port} of 127.0.0.1`);
    expect(stderr).toContain("Something listens there already");
    expect(stderr).toContain("PORT and HOST say where");
  });
});

test("no log holds a key, the pepper, a signature or the address of a node", async () => {
  const { command, url } = await startServing({ LOG_LEVEL: "trace" });
  await using _ = command;
  const body = await signPayment(deployed);
  await pay(url, body);
  await requestJson(`${url}/settle`, { method: "POST", headers: { authorization: "x4k_wrong_key" }, body });
  command.kill("SIGTERM");
  const { stdout, stderr } = await command.ended;
  const { payload } = (body as { paymentPayload: { payload: { signature: string } } }).paymentPayload;
  for (const hidden of [
    key,
    pepper,
    keyOf("operator").slice(2),
    payload.signature,
    chain.rpcUrl,
    "x4k_wrong_key",
  ]) {
    expect(`${stdout}${stderr}`).not.toContain(hidden);
  }
});

test("`up` runs as ever beside variables of `serve` that are nonsense", async () => {
  const nonsense = {
    OPERATOR_PRIVATE_KEY: "nonsense,more of it",
    OPERATOR_SIGNER_URL: "nonsense",
    OPERATOR_ADDRESS: "nonsense",
    RECOVERER_PRIVATE_KEY: "nonsense",
    ASSETS: "nonsense",
    CONFIRMATIONS: "nonsense",
    MAX_FEE_GWEI: "nonsense",
    TRUST_PROXY: "nonsense",
    DATABASE_URL: "nonsense",
    API_KEY_PEPPER: "nonsense",
    BASE_RPC_URL: "nonsense",
  };
  const args = ["up", "--json", "--no-demo", "--networks", "base", "--port", "0"];
  await using command = startCommand(args, nonsense, "/");
  const line = await command.printed(/^\{.*\}$/);
  expect(JSON.parse(line)).toMatchObject({ networks: { base: { chainId: 8453 } } });
  command.kill("SIGTERM");
  expect(await command.ended).toMatchObject({ code: 0, stdout: `${line}\n`, stderr: "" });
});
