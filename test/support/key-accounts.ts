import { type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { type Hex, keccak256Text } from "../../src/protocol/hex.ts";

/** A private key derived from a name. */
export function keyOf(name: string): Hex {
  return keccak256Text(`x402-facilitator-kit test ${name}`);
}

/** The account of {@link keyOf}. */
export function accountOf(name: string): PrivateKeyAccount {
  return privateKeyToAccount(keyOf(name));
}
