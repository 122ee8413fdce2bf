import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const src = join(import.meta.dirname, "../src");

/** The methods know them, and the generated interfaces of contracts hold them. */
const rooms = ["methods/", "contracts/"];

/**
 * What each way calls the parts of a payment, its functions and its events, and how many other files may say so: what explains
 * refusals quotes what people have signed, and what contracts revert with; fixtures sign wrongly on purpose.
 */
const waysToPay = [
  {
    way: "EIP-3009",
    ownWords:
      /validAfter|validBefore|authorizationNonce|transferWithAuthorization|AuthorizationUsed|authorizationState/,
    most: 10,
  },
  {
    way: "Permit2",
    ownWords: /permit2Authorization|nonceBitmap|[pP]ermitWitnessTransferFrom|[pP]ermitTransferFrom/,
    most: 3,
  },
] as const;

test.each(waysToPay)(
  "at most $most files outside of src/methods use the words of $way",
  ({ ownWords, most }) => {
    const naming = readdirSync(src, { recursive: true, encoding: "utf8" })
      .filter((name) => /\.tsx?$/.test(name) && !name.includes(".test."))
      .filter((name) => !rooms.some((room) => name.startsWith(room)))
      .filter((name) => ownWords.test(readFileSync(join(src, name), "utf8")))
      .sort();
    expect(naming.length > most ? naming : []).toEqual([]);
  },
);
