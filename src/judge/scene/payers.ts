import { type Hex, keccak256Text } from "../../protocol/hex.ts";
import { createPayerSigner } from "../../published/payer-signer.ts";

/** The payer of one case: its own account, so that transfers can be attributed to the case. */
export type CasePayer = { privateKey: Hex; address: Hex };

/** A recipient that buyers may not pay. */
export const stranger: Hex = `0x${keccak256Text("x402-kit judge: a stranger").slice(26)}`;

/** The payer of a case. The same seed and name give the same key, which anyone can compute: for tests only. */
export function payerOf(seed: number, name: string): CasePayer {
  const privateKey = keccak256Text(`x402-kit judge ${seed}: payer of ${name}`);
  return { privateKey, address: createPayerSigner(privateKey).address };
}

/** The goods of a case, different from those of all other cases. */
export function goodsOf(seed: number, name: string): string {
  return `x402-goods-${keccak256Text(`x402-kit judge ${seed}: goods of ${name}`).slice(2, 26)}`;
}
