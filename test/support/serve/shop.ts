import { openDatabase } from "../../../src/ledger/database/open-database.ts";
import { buildPaymentRequest } from "../../../src/methods/exact-eip3009/eip3009-method.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { networks } from "../../../src/protocol/networks.ts";
import { createOrganizations } from "../../../src/service/organizations/create-organizations.ts";
import type { Body } from "../service.ts";
import { signAs } from "../sign-as.ts";
import { type DeployedChains, pepper, startDeployedChains } from "./deployed-chains.ts";

/** Starts base with the contract deployed, and a shop that is paid on it. */
export async function startDeployedShop() {
  const deployed = await startDeployedChains(["base"]);
  return { deployed, chain: deployed.chains.base, key: await createShop(deployed.databaseUrl) };
}

/** The operator's steps before the first payment; returns the API key. */
export async function createShop(databaseUrl: string): Promise<string> {
  const db = await openDatabase({ url: databaseUrl });
  const organizations = createOrganizations({ db, pepper, now: Date.now });
  await organizations.create({ id: "shop", name: "Shop" });
  await organizations.setRecipient("shop", "base", harnessAccounts.recipient.address);
  const { key } = await organizations.createKey("shop", { scopes: ["verify", "settle"] });
  await db.destroy();
  return key;
}

/** A payment of 0.01 USDC to the deployed contract. */
export async function signPayment({ contract, chains }: DeployedChains<"base">): Promise<Body> {
  const { asset, network, now } = chains.base;
  const signed = await signAs("funded", {
    asset,
    chainId: network.chainId,
    to: contract,
    value: 10_000n,
    validBefore: (await now()) + 600n,
  });
  return buildPaymentRequest({
    x402Version: 1,
    network: networks.base,
    asset,
    payTo: contract,
    amount: 10_000n,
    resource: "https://merchant.example/resource",
    ...signed,
  });
}
