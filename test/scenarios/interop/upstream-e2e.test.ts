import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HTTPFacilitatorClient } from "@x402/core/server";
import { createPermit2ApprovalTx } from "@x402/evm";
import { createWalletClient, http } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createLocalRpc } from "../../../src/chain/rpc/local-rpc.ts";
import { buildPaymentRequest } from "../../../src/methods/exact-eip3009/eip3009-payload.ts";
import { networks } from "../../../src/protocol/networks.ts";
import { signAs } from "../../../src/published/sign-as.ts";
import { localOrganization } from "../../../src/published/test-keys.ts";
import { createBuyer } from "../../support/buyer.ts";
import { type CliProcess, repository, startScript } from "../../support/cli.ts";
import { goods, type Offer, startMerchant } from "../../support/merchant.ts";

/*
 * docs/guides/judge.md, executed: its run.sh is started as the x402 project's suite starts it, with its
 * environment, and public clients pay through it without a key.
 */

const token = "0x60a3E35Cc302bFA44Cb288Bc5a4F316Fdb1adb42";
const network = networks["base-sepolia"];

let folder: string;
let up: CliProcess;
let origin: string;
let variables: Readonly<Record<string, string>>;
let config: { environment: { optional: string[] }; schemes: string[]; evm: object };

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "x402-kit-e2e-"));
  const [port, rpcPort] = [await freePort(), await freePort()];
  const guide = await readFile(join(repository, "docs/guides/judge.md"), "utf8");
  const block = (opening: string) => {
    const [, text] = guide.split(`${opening}`);
    return (text ?? "").split("\n```")[0]?.replaceAll("8545", String(rpcPort)) ?? "";
  };
  await writeFile(join(folder, "run.sh"), block("```sh\n# run.sh\n"));
  config = JSON.parse(block("```json\n// test.config.json\n"));
  variables = Object.fromEntries(
    [...block("```sh\n# .env").matchAll(/^([A-Z_]+)=(.*)$/gm)].map(([, name = "", value = ""]) => [
      name,
      value,
    ]),
  );
  origin = `http://localhost:${port}`;
  up = await startScript(folder, "run.sh", {
    ...variables,
    PORT: String(port),
    LOCAL_ASSETS: `base-sepolia=${token},Euro Coin,3,6`,
  });
  await up.printed(/Facilitator listening/);
}, 60_000);
afterAll(async () => {
  await up?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

test("the chain answers at the port that was asked for", async () => {
  const rpc = createLocalRpc(variables.BASE_SEPOLIA_RPC_URL ?? "");
  expect(await rpc.request("eth_chainId")).toBe(`0x${network.chainId.toString(16)}`);
  expect(config.environment.optional).toContain("LOCAL_ASSETS");
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
    });
    expect(await client.verify(paymentPayload, paymentRequirements)).toMatchObject({ isValid: true });
    expect(await client.settle(paymentPayload, paymentRequirements)).toMatchObject({ success: true });
  },
);

test("its client can approve Permit2 by itself, and every route that is declared is paid", async () => {
  expect(config).toMatchObject({
    schemes: ["exact", "upto"],
    evm: { assetTransferMethods: ["eip3009", "permit2"] },
  });
  const account = privateKeyToAccount(variables.CLIENT_EVM_PRIVATE_KEY as `0x${string}`);
  const wallet = createWalletClient({ account, transport: http(variables.BASE_SEPOLIA_RPC_URL) });
  const { address } = account;
  // As its script does where the approval is not unlimited any more.
  await expect
    .poll(() =>
      createLocalRpc(variables.BASE_SEPOLIA_RPC_URL ?? "").request("eth_getBalance", address, "latest"),
    )
    .toBe("0xde0b6b3a7640000");
  await wallet.sendTransaction({ ...createPermit2ApprovalTx(token), chain: null });

  const terms = { network: network.caip2, payTo: variables.SERVER_EVM_ADDRESS ?? "" };
  const eip3009 = { asset: token, amount: "1000", extra: { name: "Euro Coin", version: "3" } };
  const permit2 = { asset: token, amount: "1000", extra: { assetTransferMethod: "permit2" } };
  const upfront = { extra: { paymentFlow: "upfront" } } as const;
  const routes: Record<string, Offer> = {
    "/exact/evm/eip3009": { ...terms, price: eip3009 },
    "/exact/evm/eip3009/upfront": { ...terms, price: eip3009, ...upfront },
    "/exact/evm/permit2": { ...terms, price: permit2 },
    "/exact/evm/permit2/upfront": { ...terms, price: permit2, ...upfront },
    "/upto/evm/permit2": { ...terms, scheme: "upto", price: { ...permit2, amount: "2000" }, charge: "1000" },
  };
  const merchant = await startMerchant({ url: origin }, routes);
  try {
    const buyer = createBuyer(account, { allowedAssets: [{ network: network.caip2, asset: token }] });
    for (const path of Object.keys(routes)) {
      const purchase = await buyer.buy(`${merchant.origin}${path}`);
      expect({ path, ...purchase }).toMatchObject({ path, status: 200, receipt: { success: true } });
    }
  } finally {
    await merchant.close();
  }
});

test("the public client and server pay with the keys and addresses of the guide", async () => {
  const price = { asset: token, amount: "1234", extra: { name: "Euro Coin", version: "3" } };
  const payTo = variables.SERVER_EVM_ADDRESS ?? "";
  const merchant = await startMerchant(
    { url: origin },
    { "/report": { network: network.caip2, payTo, price } },
  );
  try {
    const account = privateKeyToAccount(variables.CLIENT_EVM_PRIVATE_KEY as `0x${string}`);
    const buyer = createBuyer(account, { allowedAssets: [{ network: network.caip2, asset: token }] });
    const purchase = await buyer.buy(`${merchant.origin}/report`);
    expect(purchase).toMatchObject({ status: 200, body: goods, receipt: { success: true } });
  } finally {
    await merchant.close();
  }
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
