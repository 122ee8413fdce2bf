import { type Hex, keccak256Text } from "../../protocol/hex.ts";
import { createPayerSigner } from "../../published/payer-signer.ts";

/** Who pays in one case: an account of its own, so that the chain tells whose money moved. */
export type CasePayer = { privateKey: Hex; address: Hex };

/** An address that no buyer is told to pay, and that no shop sells for. */
export const stranger: Hex = `0x${keccak256Text("x402-kit judge: a stranger").slice(26)}`;

/** The payer of a case. The same seed and name give the same key, which anyone can compute: for tests only. */
export function payerOf(seed: number, name: string): CasePayer {
  const privateKey = keccak256Text(`x402-kit judge ${seed}: payer of ${name}`);
  return { privateKey, address: createPayerSigner(privateKey).address };
}

/** What a shop hands out in a case, and nowhere else. */
export function goodsOf(seed: number, name: string): string {
  return `x402-goods-${keccak256Text(`x402-kit judge ${seed}: goods of ${name}`).slice(2, 26)}`;
}
