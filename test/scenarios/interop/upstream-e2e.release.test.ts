import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { HTTPFacilitatorClient } from "@x402/core/server";
import { createPermit2ApprovalTx } from "@x402/evm";
import {
  declareEip2612GasSponsoringExtension,
  declareErc20ApprovalGasSponsoringExtension,
} from "@x402/extensions";
import { type Address, createWalletClient, encodeFunctionData, erc20Abi, type Hex, http } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { waitForTransactionReceipt } from "viem/actions";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createLocalRpc } from "../../../src/chain/rpc/local-rpc.ts";
import { buildPaymentRequest } from "../../../src/methods/exact-eip3009/eip3009-method.ts";
import { permit2Address } from "../../../src/methods/permit2/permit.ts";
import { localOrganization } from "../../../src/payer/test-keys.ts";
import { networks } from "../../../src/protocol/networks.ts";
import { createBuyer } from "../../support/buyer.ts";
import { type CliProcess, installCommand, repository, startScript } from "../../support/cli.ts";
import { type Offer, startMerchant } from "../../support/merchant.ts";
import { findFreePort } from "../../support/postgres.ts";
import { runHere } from "../../support/run-here.ts";
import { signAs } from "../../support/sign-as.ts";

/*
 * What `x402-kit upstream-e2e` writes: its run.sh is started as the x402 project's suite starts it, with the variables of its
 * suite.env, and public clients and servers pay by each route that it declares.
 */

const token = "0x60a3E35Cc302bFA44Cb288Bc5a4F316Fdb1adb42";
const network = networks["base-sepolia"];

let checkout: string;
let folder: string;
let up: CliProcess;
let origin: string;
let variables: Readonly<Record<string, string>>;

beforeAll(async () => {
  checkout = await mkdtemp(join(tmpdir(), "x402-kit-e2e-"));
  await mkdir(join(checkout, "e2e/facilitators"), { recursive: true });
  expect(await runHere(["upstream-e2e", checkout])).toMatchObject({ code: 0 });
  folder = join(checkout, "e2e/facilitators/external-proxies/x402-kit");
  const [port, rpcPort] = [await findFreePort(), await findFreePort()];
  const env = await readFile(join(folder, "suite.env"), "utf8");
  variables = Object.fromEntries(
    Object.entries(parseEnv(env.replaceAll("8545", String(rpcPort)))).map(([name, value = ""]) => [
      name,
      value,
    ]),
  );
  origin = `http://localhost:${port}`;
  await installCommand(join(folder, "kit"));
  up = await startScript(folder, "run.sh", {
    ...variables,
    PORT: String(port),
    LOCAL_ASSETS: `base-sepolia=${token},Euro Coin,3,6`,
  });
  await up.printed(/Facilitator listening/);
}, 60_000);
afterAll(async () => {
  await up?.[Symbol.asyncDispose]();
  await rm(checkout, { recursive: true });
});

/** What the suite knows of a facilitator. */
const declared = {
  type: "facilitator",
  schemes: ["exact", "upto"],
  extensions: ["eip2612GasSponsoring", "erc20ApprovalGasSponsoring"],
  evm: { transferMethods: ["eip3009", "permit2", "upto"], assetTransferMethods: ["eip3009", "permit2"] },
  environment: { required: ["PORT"], optional: expect.arrayContaining(["LOCAL_ASSETS"]) },
};

test("the suite finds what it reads: JSON, a command in a line of its own, and the chain's URL", async () => {
  expect(JSON.parse(await readFile(join(folder, "test.config.json"), "utf8"))).toMatchObject(declared);
  const lines = (await readFile(join(folder, "run.sh"), "utf8")).split("\n");
  // An older version of the suite takes the first line that begins with one of these, and runs it without a shell.
  expect(lines.find((line) => /^(?:p?npm|node|python|uv run|go run) /.test(line))).toBe("node start.mjs");
  const rpc = createLocalRpc(variables.BASE_SEPOLIA_RPC_URL ?? "");
  expect(await rpc.request("eth_chainId")).toBe(`0x${network.chainId.toString(16)}`);
  // The folder is a place of the suite's pnpm workspace, which would take a manifest in it for a member.
  expect(await readdir(folder)).not.toContain("package.json");
});

test("the guide has the lines that the command says are to be run", async () => {
  const guide = await readFile(join(repository, "docs/x402-suite.md"), "utf8");
  const { stdout } = await runHere(["upstream-e2e", checkout]);
  const [, said = ""] = stdout.split("with pnpm 10:\n\n");
  const lines = said
    .trim()
    .split("\n")
    .map((line) => line.trim().replace(checkout, "x402"));
  expect(lines.length).toBeGreaterThan(5);
  expect(guide).toContain(`upstream-e2e x402\n${lines.join("\n")}\n`);
});

test("a file that somebody has changed stays, and the command says at which commit it was tried", async () => {
  const own = "# mine\n";
  await writeFile(join(folder, "suite.sh"), own);
  const again = await runHere(["upstream-e2e", checkout]);
  expect(again).toMatchObject({ code: 0 });
  expect(again.stdout).toMatch(/suite\.sh +is there already, with another text, and stays as it is/);
  expect(again.stdout).toMatch(/start\.mjs +is there already\n/);
  expect(await readFile(join(folder, "suite.sh"), "utf8")).toBe(own);
  const { stdout: tried } = await runHere(["upstream-e2e", "--commit"]);
  expect(again.stdout).toContain(`Warning: they were tried with commit ${tried.trim()}`);
  const elsewhere = await runHere(["upstream-e2e", join(checkout, "e2e")]);
  expect(elsewhere).toMatchObject({ code: 1, stderr: expect.stringContaining("no e2e/facilitators") });
});

test("kinds that are claimed are listed, and refused when they are used", async () => {
  const { kinds } = await new HTTPFacilitatorClient({ url: origin }).getSupported();
  const claimed = { scheme: "exact", network: "solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1" } as const;
  expect(kinds).toContainEqual({ x402Version: 2, ...claimed });
  const accepted = { ...claimed, asset: "USDC", amount: "1", payTo: "somebody", maxTimeoutSeconds: 60 };
  const payment = { x402Version: 2, accepted, payload: {} };
  const response = await fetch(`${origin}/settle`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ x402Version: 2, paymentPayload: payment, paymentRequirements: accepted }),
  });
  expect(await response.json()).toMatchObject({ success: false });
});

test.each(["", "/v1"])(
  "the public facilitator client verifies and settles at %s/ without a key",
  async (base) => {
    const asset = { address: token, name: "Euro Coin", version: "3", decimals: 6 } as const;
    const payTo = variables.SERVER_EVM_ADDRESS as `0x${string}`;
    const { authorization, signature } = await signAs("funded", {
      asset,
      chainId: network.chainId,
      to: payTo,
      value: 1_000n,
      validBefore: BigInt(Math.floor(Date.now() / 1_000) + 60),
    });
    const request = buildPaymentRequest({
      ...{ x402Version: 2 as const, network, asset, payTo, amount: 1_000n, authorization, signature },
      resource: "https://merchant.example/resource",
    });
    const { paymentPayload, paymentRequirements } = JSON.parse(JSON.stringify(request));
    const client = new HTTPFacilitatorClient({ url: `${origin}${base}` });
    expect((await client.getSupported()).kinds).toContainEqual({
      x402Version: 2,
      scheme: "exact",
      network: network.caip2,
      extra: { payTo: "any", strictness: "reference", reasons: "reference" },
    });
    expect(await client.verify(paymentPayload, paymentRequirements)).toMatchObject({ isValid: true });
    expect(await client.settle(paymentPayload, paymentRequirements)).toMatchObject({ success: true });
  },
);

/** What a route of the suite's servers costs, and which of its extensions it declares. */
const terms = () => ({ network: network.caip2, payTo: variables.SERVER_EVM_ADDRESS ?? "" });
const eip3009 = { asset: token, amount: "1000", extra: { name: "Euro Coin", version: "3" } };
const permit2 = { ...eip3009, extra: { ...eip3009.extra, assetTransferMethod: "permit2" } };
const charged = { scheme: "upto", price: { ...permit2, amount: "2000" }, charge: "1000" } as const;
const upfront = { extra: { paymentFlow: "upfront" } } as const;

function walletOfClient() {
  const account = privateKeyToAccount(variables.CLIENT_EVM_PRIVATE_KEY as `0x${string}`);
  return createWalletClient({ account, transport: http(variables.BASE_SEPOLIA_RPC_URL) });
}

/** Has the suite's client send a transaction, and waits until it is mined: what it signs next goes by the chain's state. */
async function sendAsClient(transaction: { to: Address; data: Hex }): Promise<void> {
  const wallet = walletOfClient();
  const hash = await wallet.sendTransaction({ ...transaction, chain: null });
  await waitForTransactionReceipt(wallet, { hash, pollingInterval: 50 });
}

async function buyAll(routes: Readonly<Record<string, Offer>>, beforeEach?: () => Promise<void>) {
  const { account } = walletOfClient();
  const merchant = await startMerchant({ url: origin }, routes);
  try {
    const controls = { allowedAssets: [{ network: network.caip2, asset: token }] };
    const buyer = createBuyer(account, controls, variables.EVM_RPC_URL);
    for (const path of Object.keys(routes)) {
      await beforeEach?.();
      const purchase = await buyer.buy(`${merchant.origin}${path}`);
      expect({ path, ...purchase }).toMatchObject({ path, status: 200, receipt: { success: true } });
    }
  } finally {
    await merchant.close();
  }
}

test("its client can approve Permit2 by itself, and the routes without sponsoring are paid", async () => {
  // As its script does where the approval is not unlimited any more.
  await sendAsClient(createPermit2ApprovalTx(token));
  await buyAll({
    "/exact/evm/eip3009": { ...terms(), price: eip3009 },
    "/exact/evm/eip3009/upfront": { ...terms(), price: eip3009, ...upfront },
    "/exact/evm/permit2": { ...terms(), price: permit2 },
    "/exact/evm/permit2/upfront": { ...terms(), price: permit2, ...upfront },
    "/upto/evm/permit2": { ...terms(), ...charged },
  });
});

test("its client can withdraw the approval, and the routes that sponsor one are paid", async () => {
  const eip2612 = { extensions: declareEip2612GasSponsoringExtension() };
  const approval = { extensions: declareErc20ApprovalGasSponsoringExtension() };
  const revoke = encodeFunctionData({ abi: erc20Abi, functionName: "approve", args: [permit2Address, 0n] });
  await buyAll(
    {
      "/exact/evm/permit2-eip2612GasSponsoring": { ...terms(), price: permit2, ...eip2612 },
      "/exact/evm/permit2-erc20ApprovalGasSponsoring": { ...terms(), price: permit2, ...approval },
      "/upto/evm/permit2-eip2612GasSponsoring": { ...terms(), ...charged, ...eip2612 },
      "/upto/evm/permit2-erc20ApprovalGasSponsoring": { ...terms(), ...charged, ...approval },
    },
    () => sendAsClient({ to: token, data: revoke }),
  );
});

test("a key that is sent must be a good one", async () => {
  const headers = { "content-type": "application/json", authorization: "x4k_wrong" };
  expect((await fetch(`${origin}/verify`, { method: "POST", headers, body: "{}" })).status).toBe(401);
  const good = { ...headers, authorization: localOrganization.apiKey };
  expect((await fetch(`${origin}/verify`, { method: "POST", headers: good, body: "{}" })).status).toBe(200);
});

test("POST /close ends it with exit code 0, unless a web page asks", async () => {
  expect(await (await fetch(`${origin}/health`)).json()).toEqual({ status: "ok" });
  const page = await fetch(`${origin}/close`, {
    method: "POST",
    headers: { origin: "https://evil.example" },
  });
  expect(page.status).toBe(403);
  const closed = await fetch(`${origin}/close`, { method: "POST" });
  expect([closed.status, await closed.json()]).toEqual([200, { message: "Closing" }]);
  expect(await up.ended).toEqual({ code: 0, signal: null });
});
