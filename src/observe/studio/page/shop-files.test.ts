import { expect, test } from "vitest";
import { networks } from "../../../published/local-networks.ts";
import { setupOf } from "./shop-files.ts";

const { base } = networks;
const asset = { address: base.asset, decimals: base.decimals, ...base.extra };

function shopOf(given: Partial<typeof asset>): string {
  const network = { name: "base", caip2: base.caip2, payTo: base.payTo, asset: { ...asset, ...given } };
  const facilitator = { url: "http://127.0.0.1:4402/v1", apiKey: "key", payerKey: "0x01" };
  return setupOf("express", { ...facilitator, network }).find(({ name }) => name === "shop.js")?.text ?? "";
}

test("a token of one's own is named in full, since the public packages do not know it", () => {
  expect(shopOf({})).toContain('price: "$0.01" };');
  const address = "0x60a3E35Cc302bFA44Cb288Bc5a4F316Fdb1adb42";
  expect(shopOf({ address, name: "Euro Coin", version: "3", decimals: 8 })).toContain(
    `price: { asset: "${address}", amount: "1000000", extra: { name: "Euro Coin", version: "3" } } };`,
  );
});
