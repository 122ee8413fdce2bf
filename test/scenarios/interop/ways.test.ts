import { createPermit2ApprovalTx } from "@x402/evm";
import {
  declareEip2612GasSponsoringExtension,
  declareErc20ApprovalGasSponsoringExtension,
} from "@x402/extensions";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import { transferTopic } from "../../../src/methods/on-chain/events.ts";
import { localOrganization } from "../../../src/payer/test-keys.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { type Address, addressWord, type Hex, sameAddress, toHex } from "../../../src/protocol/hex.ts";
import { type BuiltInNetworkName, networkNames, networks } from "../../../src/protocol/networks.ts";
import { type Buyer, type BuyerAccount, createBuyer, fundedAccount } from "../../support/buyer.ts";
import type { LoopbackServer } from "../../support/loopback-server.ts";
import { goods, type Offer, startMerchant } from "../../support/merchant.ts";
import { runningChain } from "../../support/running-chain.ts";
import { balanceOf, sendFrom, startTestHarness } from "../../support/service.ts";

/*
 * Every way to pay, by the unmodified public packages at both ends: a row is a route of the shop, on each network, straight to
 * the shop's own wallet and through the facilitator contract.
 */

type Way = Pick<Offer, "scheme" | "extra" | "charge"> & {
  way: string;
  /** The part of a price that the buyer pays. */
  pays?: (price: bigint) => bigint;
};

const permit2 = { assetTransferMethod: "permit2" } as const;
const upfront = { paymentFlow: "upfront" } as const;

const ways: readonly Way[] = [
  { way: "exact-eip3009" },
  { way: "exact-eip3009-upfront", extra: upfront },
  { way: "exact-permit2", extra: permit2 },
  { way: "exact-permit2-upfront", extra: { ...permit2, ...upfront } },
  { way: "upto-permit2", scheme: "upto" },
  { way: "upto-permit2-some", scheme: "upto", charge: "1858", pays: () => 1_858n },
  {
    way: "upto-permit2-share",
    scheme: "upto",
    charge: "33.33%",
    pays: (price) => (price * 3_333n) / 10_000n,
  },
  { way: "upto-permit2-zero", scheme: "upto", charge: "0", pays: () => 0n },
];
const routes = ["straight", "contract"] as const;

/** One payment of the table: each has its own price, so that its transfer is known by it. */
const payments = networkNames.flatMap((network) =>
  routes.flatMap((route) =>
    ways.map(({ pays = (price: bigint) => price, ...way }, index) => {
      const price = 10_000n + BigInt(index) + (route === "straight" ? 100n : 0n);
      const wallet = toHex(crypto.getRandomValues(new Uint8Array(20)));
      const path = `/${network}/${route}/${way.way}`;
      return { ...way, network, route, path, price, paid: pays(price), wallet };
    }),
  ),
);

let harness: RunningHarness;
let shop: LoopbackServer;
/** The shop's requests to the facilitator. */
const asked: string[] = [];

beforeAll(async () => {
  harness = await startTestHarness({ networks: networkNames, payTo: "any" });
  harness.app.server.prependListener("request", ({ url = "" }) => void asked.push(url));
  const { url } = harness.description.facilitator;
  const termsOf = (network: BuiltInNetworkName) => {
    const { asset, facilitatorContract } = runningChain(harness, network);
    const { address, name, version } = asset;
    return {
      ...{ network: networks[network].caip2, payTo: facilitatorContract },
      price: { asset: address, amount: "10000", extra: { name, version } },
    };
  };
  shop = await startMerchant(
    { url, apiKey: localOrganization.apiKey },
    {
      ...Object.fromEntries(
        networkNames.flatMap((network): [string, Offer][] => {
          const sponsored = { ...termsOf(network), extensions: declareEip2612GasSponsoringExtension() };
          const brought = { ...termsOf(network), extensions: declareErc20ApprovalGasSponsoringExtension() };
          return [
            [`/${network}/sponsored/exact`, { ...sponsored, extra: permit2 }],
            [`/${network}/sponsored/upto`, { ...sponsored, scheme: "upto", charge: "1858" }],
            [`/${network}/brought/exact`, { ...brought, extra: permit2 }],
            [`/${network}/brought/upto`, { ...brought, scheme: "upto", charge: "1858" }],
          ];
        }),
      ),
      "/greedy": { ...termsOf("base"), scheme: "upto", charge: "10001" },
      ...Object.fromEntries(
        payments.map(({ path, network, route, price, wallet, way: _, paid: __, ...offer }) => {
          const { asset, facilitatorContract } = runningChain(harness, network);
          const { address, name, version } = asset;
          return [
            path,
            {
              ...offer,
              network: networks[network].caip2,
              payTo: route === "straight" ? wallet : facilitatorContract,
              price: { asset: address, amount: `${price}`, extra: { name, version } },
            },
          ];
        }),
      ),
    },
  );
});
afterAll(async () => {
  await shop?.close();
  await harness?.close();
});

function buyerOf(account: BuyerAccount, rpcUrl?: string): Buyer {
  const allowedAssets = networkNames.map((network) => {
    const { address: asset } = runningChain(harness, network).asset;
    return { network: networks[network].caip2, asset };
  });
  return createBuyer(account, { allowedAssets }, rpcUrl);
}

const { address: payer, privateKey } = testPayers.funded;
const hash = expect.stringMatching(/^0x[0-9a-f]{64}$/);

/** The transfers of the token in a transaction. */
async function transfersIn(network: BuiltInNetworkName, transaction: string | undefined) {
  const { node, asset } = runningChain(harness, network);
  const receipt = await node.request("eth_getTransactionReceipt", transaction);
  const { logs } = receipt as { logs: { address: Address; topics: Hex[]; data: Hex }[] };
  return logs
    .filter(({ address, topics }) => sameAddress(address, asset.address) && topics[0] === transferTopic)
    .map(({ topics, data }) => ({ from: topics[1], to: topics[2], value: BigInt(data) }));
}
const word = (address: Address): Hex => `0x${addressWord(address)}`;

describe.each(networkNames)("on %s", (network) => {
  const ofNetwork = payments.filter((payment) => payment.network === network);

  test("a shop of the public packages is paid in every way", async () => {
    const buyer = buyerOf(privateKeyToAccount(privateKey));
    const { recipient } = localOrganization;
    const contract = runningChain(harness, network).facilitatorContract;
    const [before, payerBefore] = [
      await balanceOf(harness, recipient, network),
      await balanceOf(harness, payer, network),
    ];

    const purchases = await Promise.all(ofNetwork.map(({ path }) => buyer.buy(`${shop.origin}${path}`)));

    for (const [index, { path, scheme, route, paid, wallet }] of ofNetwork.entries()) {
      const { status, body, receipt } = purchases[index] ?? {};
      expect({ path, status, body, receipt }).toMatchObject({
        ...{ path, status: 200, body: goods },
        receipt: {
          ...{ success: true, network: networks[network].caip2, payer },
          transaction: paid === 0n ? "" : hash,
          ...(scheme === "upto" && { amount: `${paid}` }),
        },
      });
      if (route === "straight") expect(await balanceOf(harness, wallet, network)).toBe(paid);
      if (paid === 0n) continue;
      const transfers = await transfersIn(network, receipt?.transaction);
      const to = word(route === "straight" ? wallet : contract);
      expect(transfers.filter(({ value }) => value === paid)).toContainEqual({
        from: word(payer),
        to,
        value: paid,
      });
    }
    const sum = (through: (typeof routes)[number]) =>
      ofNetwork.reduce((total, { route, paid }) => total + (route === through ? paid : 0n), 0n);
    expect((await balanceOf(harness, recipient, network)) - before).toBe(sum("contract"));
    expect(payerBefore - (await balanceOf(harness, payer, network))).toBe(sum("straight") + sum("contract"));
    expect(await balanceOf(harness, contract, network)).toBe(0n);
  });

  test("a buyer who has not approved Permit2 is told so, approves it as the public packages do, and pays", async () => {
    const chain = runningChain(harness, network);
    const account = await fundedAccount(chain, 100_000n);
    const buyer = buyerOf(account);
    const url = `${shop.origin}/${network}/straight/upto-permit2-some`;
    expect(await buyer.buy(url)).toMatchObject({ status: 412, receipt: undefined });
    const { to, data } = createPermit2ApprovalTx(chain.asset.address);
    await sendFrom(harness, account.address, to, data, network);
    expect(await buyer.buy(url)).toMatchObject({ status: 200, receipt: { success: true, amount: "1858" } });
    expect(await balanceOf(harness, account.address, network)).toBe(98_142n);
  });

  describe.each([
    ["an approval, which is settled with the payment", "sponsored", 0],
    ["a transaction that approves, which is paid for and sent before the payment", "brought", 1],
  ])("a buyer without gas signs %s", (_, route, transactions) => {
    test.each([
      ["exact", 10_000n],
      ["upto", 1_858n],
    ])("by scheme %s", async (scheme, paid) => {
      const chain = runningChain(harness, network);
      const account = await fundedAccount(chain, 100_000n);
      const buyer = buyerOf(account, chain.rpcUrl);
      for (const times of [1n, 2n]) {
        expect(await buyer.buy(`${shop.origin}/${network}/${route}/${scheme}`)).toMatchObject({
          ...{ status: 200, body: goods, receipt: { success: true, transaction: hash } },
        });
        expect(await balanceOf(harness, account.address, network)).toBe(100_000n - times * paid);
      }
      const count = await chain.node.request("eth_getTransactionCount", account.address, "latest");
      expect(Number(count)).toBe(transactions);
    });
  });
});

describe.each(["exact-eip3009-upfront", "exact-permit2-upfront"])("a route %s", (way) => {
  const url = (route: string) => `${shop.origin}/base/${route}/${way}`;

  /** The shop's requests to the facilitator, and the buyer's answer. */
  async function buy(account: BuyerAccount, route: string) {
    asked.length = 0;
    const { status, body, receipt } = await buyerOf(account).buy(url(route));
    return { status, body, receipt, asked: [...asked] };
  }
  const funded = () => privateKeyToAccount(privateKey);

  test.each(routes)("is settled without a verify before it, %s", async (route) => {
    expect(await buy(funded(), route)).toMatchObject({
      ...{ status: 200, body: goods, asked: ["/v1/settle"] },
      receipt: { success: true, transaction: hash },
    });
  });

  test.each<[string, () => BuyerAccount, string]>([
    [
      "of a payer without money",
      () => privateKeyToAccount(testPayers.empty.privateKey),
      "insufficient_funds|permit2_insufficient_balance",
    ],
    [
      "of a blacklisted payer",
      () => privateKeyToAccount(testPayers.blacklisted.privateKey),
      "invalid_transaction_state",
    ],
    [
      "signed by another key",
      () => ({ ...privateKeyToAccount(generatePrivateKey()), address: payer }),
      "signature",
    ],
  ])("refuses a payment %s by settle alone, and the shop gives nothing", async (_, account, reason) => {
    const before = await balanceOf(harness, payer);
    const refused = await buy(account(), "straight");
    expect(refused).toMatchObject({
      status: 402,
      asked: ["/v1/settle"],
      receipt: { success: false, transaction: "" },
    });
    expect(refused.receipt?.errorReason).toMatch(new RegExp(reason));
    expect(refused.body).not.toEqual(goods);
    expect(await balanceOf(harness, payer)).toBe(before);
  });
});

test("a shop that charges more than it said gets nothing", async () => {
  const before = await balanceOf(harness, payer);
  const purchase = await buyerOf(privateKeyToAccount(privateKey)).buy(`${shop.origin}/greedy`);
  expect(purchase).toMatchObject({
    status: 402,
    receipt: {
      ...{ success: false, transaction: "" },
      errorReason: "invalid_upto_evm_payload_settlement_exceeds_amount",
    },
  });
  expect(await balanceOf(harness, payer)).toBe(before);
});
