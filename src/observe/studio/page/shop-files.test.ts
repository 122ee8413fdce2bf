import { expect, test } from "vitest";
import { networks } from "../../../payer/local-networks.ts";
import { type Framework, frameworks } from "../../../payer/shop-variables.ts";
import { type SetupPart, setupOf } from "./shop-files.ts";

const { base } = networks;
const asset = { address: base.asset, decimals: base.decimals, ...base.extra };

function shopOf(framework: Framework, given: Partial<typeof asset> = {}): readonly SetupPart[] {
  const network = { name: "base", caip2: base.caip2, payTo: base.payTo, asset: { ...asset, ...given } };
  const facilitator = { url: "http://127.0.0.1:4402/v1", apiKey: "key", payerKey: "0x01" };
  return setupOf(framework, { ...facilitator, network });
}

test.each(frameworks)(
  "a token of one's own is named in full with %s, since its package does not know it",
  (framework) => {
    const sold = (given?: Partial<typeof asset>) =>
      shopOf(framework, given)
        .map(({ text }) => text)
        .join("\n");
    for (const { name, text } of shopOf(framework)) expect(text, name).not.toBe("");
    expect(sold()).toContain('price: "$0.01" };');
    const address = "0x60a3E35Cc302bFA44Cb288Bc5a4F316Fdb1adb42";
    expect(sold({ address, name: "Euro Coin", version: "3", decimals: 8 })).toContain(
      `price: { asset: "${address}", amount: "1000000", extra: { name: "Euro Coin", version: "3" } } };`,
    );
  },
);
