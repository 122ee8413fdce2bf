import fc from "fast-check";
import { keccak256, parseTransaction, serializeTransaction } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { recoverSigner } from "../chain/signing/recover-signer.ts";
import { harnessAccounts } from "../payer/accounts.ts";
import { encodeTransaction } from "./encode-transaction.ts";
import type { Hex } from "./hex.ts";
import { mostCost, readSignedTransaction, readTransaction } from "./signed-transaction.ts";

const hex = (length: { min: number; max: number }) =>
  fc
    .uint8Array({ minLength: length.min, maxLength: length.max })
    .map((bytes): Hex => `0x${Buffer.from(bytes).toString("hex")}`);

const transactions = fc.record({
  chainId: fc.constantFrom(1, 10, 137, 8453, 84_532, 11_155_420),
  nonce: fc.oneof(fc.constantFrom(0, 1, 127, 128, 255, 256), fc.nat()),
  to: hex({ min: 20, max: 20 }),
  data: fc.oneof(hex({ min: 0, max: 60 }), hex({ min: 200, max: 1_000 }), hex({ min: 65_600, max: 65_600 })),
  gas: fc.bigInt({ min: 0n, max: 2n ** 24n }),
  maxFeePerGas: fc.bigInt({ min: 0n, max: 2n ** 70n }),
  maxPriorityFeePerGas: fc.constant(0n),
});

const signatures = fc.record({
  r: hex({ min: 32, max: 32 }),
  s: hex({ min: 32, max: 32 }),
  yParity: fc.constantFrom<0 | 1>(0, 1),
});

test("the same bytes as viem's, before and after signing", () => {
  fc.assert(
    fc.property(transactions, signatures, (transaction, { r, s, yParity }) => {
      const whole = { type: "eip1559", value: 0n, ...transaction } as const;
      expect(encodeTransaction(transaction)).toBe(serializeTransaction(whole));
      const raw = encodeTransaction(transaction, { r: r.slice(2), s: s.slice(2), yParity });
      expect(raw).toBe(serializeTransaction(whole, { r, s, yParity }));
    }),
    { numRuns: 60 },
  );
});

test("leading zeros of a signature are left out, as the chain wants them", () => {
  const to: Hex = `0x${"fa".repeat(20)}`;
  const fees = { maxFeePerGas: 2n, maxPriorityFeePerGas: 1n };
  const transaction = { chainId: 8453, nonce: 7, to, data: "0x", gas: 21_000n, ...fees } as const;
  const [r, s] = [`${"00".repeat(2)}${"7f".repeat(30)}`, `${"00".repeat(31)}05`];
  expect(encodeTransaction(transaction, { r, s, yParity: 1 })).toBe(
    serializeTransaction(
      { type: "eip1559", value: 0n, ...transaction },
      { r: `0x${r}`, s: `0x${s}`, yParity: 1 },
    ),
  );
});

const account = privateKeyToAccount(generatePrivateKey());
const to: Hex = `0x${"fa".repeat(20)}`;
const call: Hex = `0x${"12".repeat(68)}`;
const unpriced = { chainId: 8453, nonce: 7, to, data: call, gas: 70_000n, value: 0n } as const;
const fees = { maxFeePerGas: 2_000_000_000n, maxPriorityFeePerGas: 1_000_000n } as const;
const usual = { type: "eip1559", ...unpriced, ...fees } as const;

test("what a wallet signed is read as viem reads it, with its hash and its signer", async () => {
  for (const change of [{}, { nonce: 0 }, { value: 5n }, { gas: 0n }, { data: "0x" as const }]) {
    const raw = await account.signTransaction({ ...usual, ...change });
    const read = readSignedTransaction(raw);
    const { nonce = 0, value = 0n, gas = 0n, data = "0x" } = parseTransaction(raw);
    expect(read).toMatchObject({ chainId: 8453, nonce, value, gas, data, to: usual.to, raw });
    expect(read?.hash).toBe(keccak256(raw));
    expect(read && recoverSigner(read.digest, read.signature)).toBe(account.address.toLowerCase());
  }
});

test("upper case is the same transaction", async () => {
  const raw = await account.signTransaction(usual);
  const upper: Hex = `0x${raw.slice(2).toUpperCase()}`;
  expect(readSignedTransaction(upper)).toEqual(readSignedTransaction(raw));
});

const gasPrice = fees.maxFeePerGas;
const older = ["legacy", "eip2930"] as const;

test.each(older)("one of type %s is read too, whose gas price is fee and tip", async (type) => {
  for (const change of [{}, { nonce: 0, chainId: 1 }, { value: 5n }, { gas: 0n }, { chainId: 11_155_420 }]) {
    const transaction = { ...unpriced, ...change };
    const raw = await account.signTransaction({ ...transaction, type, gasPrice });
    const read = readSignedTransaction(raw);
    const prices = { maxFeePerGas: gasPrice, maxPriorityFeePerGas: gasPrice };
    expect(read).toMatchObject({ ...transaction, ...prices, raw, hash: keccak256(raw) });
    expect(read && recoverSigner(read.digest, read.signature)).toBe(account.address.toLowerCase());
  }
});

test("another kind of transaction, or another spelling, is not read", async () => {
  const raw = await account.signTransaction(usual);
  const accessList = [{ address: to, storageKeys: [] }];
  const { chainId: _, ...anywhere } = unpriced;
  const legacy = await account.signTransaction({ ...unpriced, type: "legacy", gasPrice });
  const others: readonly unknown[] = [
    // For every chain.
    await account.signTransaction({ ...anywhere, type: "legacy", gasPrice }),
    await account.signTransaction({ ...unpriced, type: "eip2930", gasPrice, accessList }),
    legacy.replace("0x", "0x01"),
    raw.replace("0x02", "0x01"),
    await account.signTransaction({ ...usual, accessList }),
    await account.signTransaction({ ...usual, to: null }),
    serializeTransaction(usual),
    `${raw}00`,
    raw.slice(0, -2),
    raw.replace("0x02f8", "0x02f900"),
    raw.replace("0x02", "0x04"),
    ...["0x", "0x02", "0x02c0", "0x02f8", 7, null, undefined, `0x02${"ff".repeat(40)}`],
    `${raw.slice(0, 8)}820000${raw.slice(14)}`,
  ];
  expect(others.map(readSignedTransaction)).toEqual(others.map(() => undefined));
});

test.each(older)("a changed %s transaction is another one to viem too", async (type) => {
  const raw = await account.signTransaction({ ...unpriced, type, gasPrice });
  const place = fc.nat({ max: raw.length / 2 - 2 });
  fc.assert(
    fc.property(place, fc.integer({ min: 0, max: 255 }), (at, byte) => {
      const text = byte.toString(16).padStart(2, "0");
      const changed: Hex = `0x${raw.slice(2, 2 + 2 * at)}${text}${raw.slice(4 + 2 * at)}`;
      const read = readSignedTransaction(changed);
      if (read === undefined) return;
      const {
        chainId,
        nonce = 0,
        gas = 0n,
        gasPrice = 0n,
        value = 0n,
        data = "0x",
      } = parseTransaction(changed);
      const prices = { maxFeePerGas: gasPrice, maxPriorityFeePerGas: gasPrice };
      expect(read).toMatchObject({ chainId, nonce, gas, value, data, ...prices, raw: changed });
    }),
    { numRuns: 500 },
  );
});

test("no bytes are read as two transactions, and none throw", async () => {
  const raw = await account.signTransaction(usual);
  const place = fc.nat({ max: raw.length / 2 - 2 });
  fc.assert(
    fc.property(place, fc.integer({ min: 0, max: 255 }), (at, byte) => {
      const text = byte.toString(16).padStart(2, "0");
      const changed: Hex = `0x${raw.slice(2, 2 + 2 * at)}${text}${raw.slice(4 + 2 * at)}`;
      const read = readSignedTransaction(changed);
      // Of what offers a tip above all that it pays, which no node takes, viem reads nothing.
      if (read === undefined || read.maxPriorityFeePerGas > read.maxFeePerGas) return;
      const { r, s } = parseTransaction(changed);
      const yParity = read.signature.endsWith("1b") ? 0 : 1;
      // Written again it is what it was read from.
      const digits = { r: BigInt(r ?? 0).toString(16), s: BigInt(s ?? 0).toString(16) };
      expect(encodeTransaction(read, { ...digits, yParity })).toBe(changed);
    }),
    { numRuns: 500 },
  );
});

test("a transaction of ours is read as it was signed", async () => {
  const { privateKey } = harnessAccounts.operator;
  const account = privateKeyToAccount(privateKey);
  await fc.assert(
    fc.asyncProperty(transactions, async (transaction) => {
      const { nonce: txNonce, gas, to, data, maxFeePerGas } = transaction;
      const raw = await account.signTransaction({ ...transaction, type: "eip1559" });
      expect(readTransaction(raw)).toEqual({ txNonce, gas, to: to.toLowerCase(), data });
      expect(mostCost({ raw, maxFeePerGas })).toBe(gas * maxFeePerGas);
    }),
    { numRuns: 30 },
  );
});
