import {
  BuilderCodeFacilitatorExtension,
  parseBuilderCodeSuffixFromCalldata,
} from "@x402/extensions/builder-code";
import { expect, test } from "vitest";
import { createRandom } from "../../test/support/random.ts";
import { appendCodes, type BuilderCodes, mergeCodes, readClaimedCodes, readCodes } from "./builder-code.ts";
import type { Hex } from "./hex.ts";

const marker = "8021".repeat(8);

const payment = (info: unknown, x402Version: 1 | 2 = 2) => ({
  x402Version,
  extensions: { "builder-code": { info } },
});

/** The suffix of the public facilitator for a payment. */
function publicSuffix(info: unknown, x402Version: 1 | 2, builderCode?: string): string {
  const extension = new BuilderCodeFacilitatorExtension(builderCode === undefined ? {} : { builderCode });
  const context = { paymentPayload: payment(info, x402Version), paymentRequirements: {} };
  return extension.buildDataSuffix(context as never)?.slice(2) ?? "";
}

const long = "x".repeat(32);

test.each<{ info: unknown; version?: 1 | 2; wallet?: string }>([
  { info: { a: "bc_shop" } },
  { info: { a: "bc_shop", s: ["bc_client"] }, wallet: "bc_facilitator" },
  {
    info: { a: long, s: Array.from({ length: 12 }, (_, index) => `${index}`.padEnd(32, "y")) },
    wallet: long,
  },
  { info: { a: "bc_shop", s: "alone" }, version: 1 },
  { info: { a: "Not A Code", s: ["", "ok", 7, "UPPER", "x".repeat(33)] } },
  { info: ["a"], wallet: "w" },
  { info: null },
  { info: { s: [] } },
])("payments have the suffix of the public facilitator: $info", ({ info, version = 2, wallet }) => {
  const codes = { ...readClaimedCodes(payment(info, version), version), wallet };
  const data = appendCodes("0x1234", mergeCodes([codes]));
  expect(data).toBe(`0x1234${publicSuffix(info, version, wallet)}`);
  const { a, w, s } = parseBuilderCodeSuffixFromCalldata(data) ?? {};
  const { app, services, wallet: own } = readCodes(data) ?? {};
  expect({ app, own, services }).toEqual({ app: a, own: w, services: s });
});

test("the suffix is that of ERC-8021, schema 2", () => {
  expect(appendCodes("0x", { app: "ab", wallet: "c", services: ["d"] })).toBe(
    `0xa3${"6161626162"}${"61776163"}${"6173816164"}000f02${marker}`,
  );
});

test("payments that share a transaction bring all their services, each once, ten at most", () => {
  const of = (...services: string[]): BuilderCodes => ({ app: "shop", wallet: "w", services });
  expect(mergeCodes([of("a", "b"), of("b", "c"), of()])).toEqual(of("a", "b", "c"));
  const many = Array.from({ length: 8 }, (_, index) => `s${index}`);
  expect(mergeCodes([of(...many), of("y", "z", "none")])?.services).toEqual([...many, "y", "z"]);
  expect(mergeCodes([undefined, {}])).toBeUndefined();
});

test("what another facilitator attests beside the codes does not hide them", () => {
  // {"w": "f", "m": {"x402ChargeCounts": [1, 300]}}
  const map = `a261776166616da1${"70"}${Buffer.from("x402ChargeCounts").toString("hex")}820119012c`;
  const length = (map.length / 2).toString(16).padStart(4, "0");
  expect(readCodes(`0x${map}${length}02${marker}`)).toEqual({ wallet: "f" });
});

test("calldata of any kind is read without an error", () => {
  const random = createRandom(45);
  const nested = `${"81".repeat(60_000)}00`;
  const wrong = ["", "a1", "bf", "a161", "a16161", "a1616162", "9b0000000100000000", "ba00ffffff", nested];
  const randomMaps = Array.from({ length: 2_000 }, () =>
    Buffer.from(Array.from({ length: random.between(0, 63) }, () => random.between(0, 255))).toString("hex"),
  );
  for (const map of [...wrong, ...randomMaps]) {
    const length = (map.length / 2).toString(16).padStart(4, "0");
    const data: Hex = `0x${map}${length}02${marker}`;
    expect(Object.keys(readCodes(data) ?? {}).every((key) => /^(app|wallet|services)$/.test(key))).toBe(true);
  }
  expect(wrong.map((map) => readCodes(`0x${map}ffff02${marker}`))).toEqual(wrong.map(() => undefined));
  expect(readCodes(`0x${marker}`)).toBeUndefined();
  expect(readCodes("0x")).toBeUndefined();
});
