import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { configFor, signDeposit, signPurchase } from "../../src/methods/batch-settlement/sign-channel.ts";
import { buildRequirements, writePayload } from "../../src/methods/build-request.ts";
import { harnessAccounts } from "../../src/payer/accounts.ts";
import { testPayers } from "../../src/payer/test-payers.ts";
import type { Address } from "../../src/protocol/hex.ts";
import type { SigningTerms } from "./up.ts";

/** A shop that is paid at a wallet and sells for one unit, with its own key for claims. */
function shopOf({ networks }: SigningTerms, payTo: Address) {
  const { base: network } = networks;
  if (network === undefined) throw new Error("base does not run");
  const { asset, chainId } = network;
  const resource = "https://shop.example/goods";
  const written = buildRequirements({
    x402Version: 2,
    network: { ...network, name: "base" },
    asset,
    payTo,
    amount: 1n,
    resource,
    scheme: "batch-settlement",
  });
  const { address: receiverAuthorizer } = harnessAccounts.authorizer;
  const extra = { ...written.extra, receiverAuthorizer, withdrawDelay: 900 };
  const paymentRequirements = { ...written, extra };
  const payer = privateKeyToAccount(testPayers.funded.privateKey);
  return {
    asset,
    payer,
    open: () => ({ chainId, config: configFor(payer, { asset, payTo, extra }, generatePrivateKey()) }),
    write(payload: object) {
      const offer = { x402Version: 2, written: paymentRequirements, resource: { url: resource } } as const;
      return JSON.stringify({
        x402Version: 2,
        paymentPayload: writePayload(offer, payload),
        paymentRequirements,
      });
    },
  };
}

type Shop = ReturnType<typeof shopOf>;

async function depositInto({ asset, payer, write }: Shop, channel: ReturnType<Shop["open"]>, amount: bigint) {
  const validBefore = BigInt(Math.floor(Date.now() / 1_000) + 3_600);
  const terms = { asset, transfer: "eip3009", amount, validBefore } as const;
  return write(await signDeposit(payer, { ...channel, max: 1n }, terms));
}

/** The bodies of deposits of ten units, each of which opens a channel. */
export function signDeposits(terms: SigningTerms, payTo: Address, count: number): Promise<string[]> {
  const shop = shopOf(terms, payTo);
  return Promise.all(Array.from({ length: count }, () => depositInto(shop, shop.open(), 10n)));
}

/** The body of a deposit that opens a channel, and the bodies of purchases on it. */
export async function signPurchases(terms: SigningTerms, payTo: Address, count: number) {
  const shop = shopOf(terms, payTo);
  const channel = shop.open();
  const deposit = await depositInto(shop, channel, BigInt(count + 1));
  const vouchers = await Promise.all(
    Array.from({ length: count }, async (_, index) =>
      shop.write(await signPurchase(shop.payer, { ...channel, max: BigInt(index + 2) })),
    ),
  );
  return { deposit, vouchers };
}
