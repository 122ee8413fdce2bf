import { keccak_256 } from "@noble/hashes/sha3";
import fc from "fast-check";
import secp256k1 from "secp256k1";
import { privateKeyToAccount } from "viem/accounts";
import { afterEach, describe, expect, test } from "vitest";
import {
  computeKeccakBy,
  type Hex,
  keccak256,
  keccak256Text,
  keccakBytes,
  toHex,
} from "../../protocol/hex.ts";
import {
  loadFastKeccak,
  loadRecovery,
  normaliseSignature,
  type RecoverPublicKey,
  recoverSigner,
  rememberSigners,
} from "./recover-signer.ts";

const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const word = (value: bigint) => value.toString(16).padStart(64, "0");

const digest = keccak256Text("a payment");
const account = privateKeyToAccount(keccak256Text("a payer"));
const signature = await account.sign({ hash: digest });
const [r, s, v] = [signature.slice(2, 66), signature.slice(66, 130), signature.slice(130)];
const payer = account.address.toLowerCase();

test("the signature that the x402 specification publishes is that of its payer", () => {
  expect(
    recoverSigner(
      "0xf256992871671abcb27ff92885a7afa46218724e5fc0bac35d050115aa1d22e6",
      "0x2d6a7588d6acca505cbf0d9a4a227e0c52c6c34008c8e8986a1283259764173608a2ce6496642e377d6da8dbbf5836e9bd15092f9ecab05ded3d6293af148b571c",
    ),
  ).toBe("0x857b06519e91e3a54538791bdbb0e22373e36b66");
});

test("what is remembered is recovered once, and of every signature by itself", () => {
  const asked: string[] = [];
  const recover = rememberSigners((...of) => {
    asked.push(of.join());
    return recoverSigner(...of);
  }, 2);
  const forged = `0x${r}${s}${v === "1b" ? "1c" : "1b"}` as const;
  const other = keccak256Text("another payment");
  const look = () => [recover(digest, signature), recover(digest, forged) === payer];
  expect([look(), look(), look()]).toEqual(Array(3).fill([payer, false]));
  expect(asked).toHaveLength(2);
  expect(recover(other, signature)).not.toBe(payer);
  // The first one has made room.
  expect(recover(digest, signature)).toBe(payer);
  expect(asked).toHaveLength(4);
  // What has no signer takes no place.
  expect([recover(digest, "0x"), recover(digest, "0x")]).toEqual([undefined, undefined]);
  expect(recover(digest, signature)).toBe(payer);
  expect(asked).toHaveLength(6);
});

test("v may be 27 and 28, or 0 and 1, and hex in any casing", () => {
  expect(recoverSigner(digest, signature)).toBe(payer);
  expect(recoverSigner(digest, `0x${r}${s}${v === "1b" ? "00" : "01"}`)).toBe(payer);
  expect(recoverSigner(digest, `0x${signature.slice(2).toUpperCase()}`)).toBe(payer);
});

describe("a signature of no account", () => {
  const otherS = word(order - BigInt(`0x${s}`));
  const otherV = v === "1b" ? "1c" : "1b";
  test.each<[string, Hex]>([
    ["nothing", "0x"],
    ["64 bytes (EIP-2098)", `0x${r}${s}`],
    ["66 bytes", `${signature}00`],
    ["half a byte more", `${signature}0`],
    ["no hex", `0x${"zz".repeat(65)}`],
    ["v 29", `0x${r}${s}1d`],
    ["v 2", `0x${r}${s}02`],
    ["v 35 (EIP-155)", `0x${r}${s}23`],
    ["s in the upper half, which recovers elsewhere", `0x${r}${otherS}${otherV}`],
    ["s just above half the order", `0x${r}${word(order / 2n + 1n)}${v}`],
    ["r zero", `0x${word(0n)}${s}${v}`],
    ["s zero", `0x${r}${word(0n)}${v}`],
    ["r the order", `0x${word(order)}${s}${v}`],
    ["r the largest word", `0x${"f".repeat(64)}${s}${v}`],
    ["r of no point on the curve", `0x${word(5n)}${s}${v}`],
  ])("%s", (_, bad) => {
    expect(recoverSigner(digest, bad)).toBeUndefined();
  });

  test("the high s above is a real signature of the payer, which only the token refuses", () => {
    const publicKey = secp256k1.ecdsaRecover(
      Buffer.from(`${r}${otherS}`, "hex"),
      Number.parseInt(otherV, 16) - 27,
      Buffer.from(digest.slice(2), "hex"),
      false,
    );
    expect(toHex(publicKey)).toBe(account.publicKey);
  });

  test("over a digest that is none", () => {
    expect(recoverSigner("0x12", signature)).toBeUndefined();
  });
});

test("the signer is recovered, for any key and digest", async () => {
  const key = fc.bigInt({ min: 1n, max: order - 1n }).map((value): Hex => `0x${word(value)}`);
  const digest = fc.uint8Array({ minLength: 32, maxLength: 32 }).map(toHex);
  await fc.assert(
    fc.asyncProperty(key, digest, async (key, hash) => {
      const account = privateKeyToAccount(key);
      expect(recoverSigner(hash, await account.sign({ hash }))).toBe(account.address.toLowerCase());
    }),
    { numRuns: 50 },
  );
});

test("never throws", () => {
  const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length }).map(toHex);
  const anything = fc.oneof(
    bytes(65),
    bytes(64).map((rs): Hex => `${rs}1b`),
    fc.uint8Array().map(toHex),
    fc.string().map((text): Hex => `0x${text}`),
  );
  fc.assert(
    fc.property(fc.oneof(bytes(32), anything), anything, (digest, signature) => {
      expect(recoverSigner(digest, signature) ?? "0x".padEnd(42, "0")).toMatch(/^0x[0-9a-f]{40}$/);
      normaliseSignature(signature);
    }),
    { numRuns: 2_000 },
  );
});

test("normalising gives v as USDC takes it, and leaves what is no plain signature alone", () => {
  expect(normaliseSignature(`0x${r}${s}00`)).toBe(`0x${r}${s}1b`);
  expect(normaliseSignature(`0x${r}${s}01`)).toBe(`0x${r}${s}1c`);
  for (const untouched of [
    `0x${r}${s}1b`,
    `0x${r}${s}1c`,
    `0x${r}${s}02`,
    `0x${r}${s}`,
    "0x",
    "0x00",
  ] as const) {
    expect(normaliseSignature(untouched)).toBe(untouched);
  }
});

const native = loadRecovery();
const substitute = loadRecovery(() => {
  throw new Error("No native build was found for platform=linux arch=arm64");
});

/** The recovered key; undefined if there is none. */
function outcome(recover: RecoverPublicKey, rs: Uint8Array, recoveryId: 0 | 1, digest: Uint8Array): string {
  try {
    return Buffer.from(recover(rs, recoveryId, digest)).toString("hex");
  } catch {
    return "no key";
  }
}

test("libsecp256k1 is there, and where it is not, that is known", () => {
  expect([native.isNative, substitute.isNative]).toEqual([true, false]);
});

test("both ways of recovering agree about any signature", () => {
  const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
  const edges = fc.constantFrom(
    "00".repeat(32),
    "ff".repeat(32),
    `${"00".repeat(31)}01`,
    "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141",
    "7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0",
  );
  const half = fc.oneof(
    { weight: 4, arbitrary: bytes(32) },
    { weight: 1, arbitrary: edges.map((hex) => Uint8Array.from(Buffer.from(hex, "hex"))) },
  );
  let keys = 0;
  fc.assert(
    fc.property(half, half, fc.constantFrom<0 | 1>(0, 1), bytes(32), (r, s, recoveryId, digest) => {
      const rs = Uint8Array.from([...r, ...s]);
      const key = outcome(native.recoverPublicKey, rs, recoveryId, digest);
      if (key !== "no key") keys++;
      expect(outcome(substitute.recoverPublicKey, rs, recoveryId, digest)).toBe(key);
    }),
    { numRuns: 200 },
  );
  expect(keys).toBeGreaterThan(20);
});

afterEach(() => computeKeccakBy(keccak_256));

test("the fast hash is used, and equals the other for any bytes", async () => {
  await loadFastKeccak();
  const first = keccakBytes(new Uint8Array(3));
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 2_000 }), (bytes) => {
      expect(keccakBytes(bytes)).toEqual(keccak_256(bytes));
      expect(keccak256(toHex(bytes))).toBe(toHex(keccak_256(bytes)));
    }),
  );
  expect(first).toEqual(keccak_256(new Uint8Array(3)));
  expect(keccakBytes).not.toBe(keccak_256);
  expect(keccak256("0x")).toBe("0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470");
  expect(keccak256Text("transfer(address,uint256)").slice(0, 10)).toBe("0xa9059cbb");
});
