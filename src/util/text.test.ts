import { expect, test } from "vitest";
import { cpuMs } from "../../test/support/cpu-time.ts";
import { maskSecrets, showValue } from "./text.ts";

const deep = JSON.parse(`${"[".repeat(200_000)}${"]".repeat(200_000)}`);

test.each<[unknown, string]>([
  [undefined, "nothing"],
  [null, "null"],
  ["0x12", '"0x12"'],
  ["a".repeat(100), `"${"a".repeat(79)}…`],
  [{ toString: "x" }, '{"toString":"x"}'],
  [[{ toString: null, valueOf: null }], '[{"toString":null,"valueOf":null}]'],
  [JSON.parse('{"__proto__":{"toJSON":1}}'), '{"__proto__":{"toJSON":1}}'],
  [Object.create(null), "{}"],
  [12n, "a value of type bigint"],
  [() => 1, "a function"],
  [deep, "an array that cannot be shown"],
])("any value is shown, whatever is in it", (value, shown) => {
  expect(showValue(value)).toBe(shown);
});

const key = `0x${"ac".repeat(32)}`;
const signature = `0x${"5e".repeat(65)}`;
const header = Buffer.from(JSON.stringify({ payload: { signature } })).toString("base64");

test.each([
  ["a signature", `{"signature": "${signature}"}`, signature.slice(12)],
  ["a signature that is called a nonce", `{"nonce": "${signature}"}`, signature.slice(12)],
  ["a token that is no address", `{"token": "${key}"}`, key.slice(8)],
  ["a private key", `{"key": "${key}"}`, key.slice(8)],
  ["a private key without 0x, in no JSON at all", `key=${key.slice(2)}&x=1`, key.slice(10)],
  ["a private key by the name of its member", '{"privateKey": "short one"}', "short one"],
  ["an API key", '{"a": "x4k_ab12_Secret-of_it"}', "Secret-of_it"],
  ["a header", '{"headers": {"authorization": "Bearer abcdef"}}', "abcdef"],
  ["the payment header, in base64", `{"payment": "${header}"}`, header.slice(12)],
  ["credentials of a URL", '{"resource": "https://user:pass@host/"}', "pass"],
  ["a key in a query", '{"url": "https://node.example/?apiKey=abc123&a=1"}', "abc123"],
  ["a mnemonic", "test test test test test test test test test test test junk", "test"],
])("%s is masked, and every other place of the text stays", (_, text, secret) => {
  const masked = maskSecrets(text);
  expect(masked).not.toContain(secret);
  expect(masked).toHaveLength(text.length);
});

test("what a reader needs of a payment stays as it is", () => {
  const text = JSON.stringify({
    ...{ x402Version: 1, scheme: "exact", network: "base" },
    authorization: {
      ...{ from: `0x${"ab".repeat(20)}`, to: `0x${"cd".repeat(20)}`, value: "10000" },
      nonce: `0x${"07".repeat(32)}`,
    },
    permit2Authorization: {
      permitted: { token: `0x${"ab".repeat(20)}`, amount: "10000" },
      nonce: `${2n ** 256n - 1n}`,
    },
    resource: "https://merchant.example/a/resource/with/a/path",
  });
  expect(maskSecrets(text)).toBe(text);
});

test("the beginning of a secret at the end of a cut text is masked as well", () => {
  const text = `{"signature": "${signature.slice(0, 40)}`;
  expect(maskSecrets(text)).toContain(signature.slice(0, 40));
  expect(maskSecrets(text, { isCut: true })).not.toContain(signature.slice(0, 10));
});

test.each([
  "a",
  "ab ",
  '"token":',
  "x4k_",
  "://a:",
  "0",
  "eyJ",
  "Bearer ",
  "a.",
  "aB1+x.",
  "?key=",
  "abcd,",
  'nonce":"1',
  '"token":"0x',
  " ",
  '" :',
])("a text of nothing but %j takes next to no time", (part) => {
  const text = `${part.repeat(32_768 / part.length)} `;
  expect(cpuMs(() => maskSecrets(text, { isCut: true }))).toBeLessThan(500);
});
