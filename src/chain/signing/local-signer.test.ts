import { createRequire } from "node:module";
import { keccak256, parseTransaction, recoverTransactionAddress } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test, vi } from "vitest";
import { keyOf } from "../../../test/support/key-accounts.ts";
import type { Hex } from "../../protocol/hex.ts";
import { KitError } from "../../util/errors.ts";
import { createLocalSigner } from "./local-signer.ts";

const transaction = {
  chainId: 8453,
  nonce: 0,
  to: `0x${"fa".repeat(20)}`,
  data: "0x1234",
  gas: 500_000n,
  maxFeePerGas: 2_000_000_000n,
  maxPriorityFeePerGas: 1_000_000n,
} as const;

test("a transaction says what it was asked to say, carries no value, and is the operator's", async () => {
  const signer = createLocalSigner(keyOf("operator"));
  const { raw, hash, ...fees } = await signer.signTransaction(transaction);
  const parsed = parseTransaction(raw);
  expect(parsed).toMatchObject(transaction);
  expect(parsed.value ?? 0n).toBe(0n);
  expect(await recoverTransactionAddress({ serializedTransaction: raw as `0x02${string}` })).toBe(
    signer.address,
  );
  expect(hash).toBe(keccak256(raw));
  expect(fees).toEqual({ maxFeePerGas: 2_000_000_000n, maxPriorityFeePerGas: 1_000_000n });
});

test("the same transaction is signed to the same bytes, so that sending it again is no second one", async () => {
  const signer = createLocalSigner(keyOf("operator"));
  const later = { ...transaction, nonce: 7 };
  const first = await signer.signTransaction(later);
  expect(await signer.signTransaction(later)).toEqual(first);
  expect(parseTransaction(first.raw).nonce).toBe(7);
});

test("and to the bytes that viem signs", async () => {
  const account = privateKeyToAccount(keyOf("operator"));
  for (let nonce = 0; nonce < 20; nonce++) {
    const { raw } = await createLocalSigner(keyOf("operator")).signTransaction({ ...transaction, nonce });
    expect(raw).toBe(await account.signTransaction({ type: "eip1559", ...transaction, nonce }));
  }
  expect(createLocalSigner(keyOf("operator")).address).toBe(account.address);
});

test("and without native code, which gets no key", async () => {
  const native = createRequire(import.meta.url)("secp256k1/bindings.js");
  const spies = ["ecdsaSign", "publicKeyCreate"].map((name) => vi.spyOn(native, name));
  await createLocalSigner(keyOf("operator")).signTransaction(transaction);
  for (const spy of spies) expect(spy).not.toHaveBeenCalled();
  vi.restoreAllMocks();
});

test.each<[string, Hex]>([
  ["too short", "0xdeadbeefdeadbeef"],
  ["zero", `0x${"0".repeat(64)}`],
  ["the order of the curve", "0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141"],
  ["no hex", `0x${"zz".repeat(32)}`],
  ["too long", `0x${"11".repeat(33)}`],
  ["followed by something", `0x${"11".repeat(32)}zz`],
])("a key that is none (%s) is refused without being quoted", (_, key) => {
  try {
    createLocalSigner(key);
    expect.unreachable();
  } catch (error) {
    if (!(error instanceof KitError)) throw error;
    expect(`${error.stack} ${error.hints} ${String(error.cause)}`).not.toContain(key.slice(2));
  }
});
