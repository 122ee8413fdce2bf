import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const src = join(import.meta.dirname, "../src");

/** What EIP-3009 calls the parts of a payment, its functions and its event. */
const ownWords =
  /validAfter|validBefore|authorizationNonce|transferWithAuthorization|AuthorizationUsed|authorizationState/;

/** The methods know them, and the generated interfaces of contracts hold them. */
const rooms = ["methods/", "contracts/"];

/** So many other files may say them: what explains refusals quotes what people have signed, and the token's reverts. */
const most = 10;

test(`at most ${most} files outside of src/methods use the words of one way to pay`, () => {
  const naming = readdirSync(src, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.tsx?$/.test(name) && !name.includes(".test."))
    .filter((name) => !rooms.some((room) => name.startsWith(room)))
    .filter((name) => ownWords.test(readFileSync(join(src, name), "utf8")))
    .sort();
  expect(naming.length > most ? naming : []).toEqual([]);
});
