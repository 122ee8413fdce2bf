import { type Address, addressWord, type Hex, keccak256, keccak256Text, uintWord } from "../protocol/hex.ts";

/** Permit2, at the same address on every chain that this service knows. Source: Uniswap/permit2. */
export const permit2Address: Address = "0x000000000022D473030F116dDEE9F6B43aC78BA3";

const domainTypehash = keccak256Text("EIP712Domain(string name,uint256 chainId,address verifyingContract)");
const nameHash = keccak256Text("Permit2");

/** The domain separator of Permit2 on a chain, as returned by its `DOMAIN_SEPARATOR()`. The domain has no version. */
export function permit2Separator(chainId: number): Hex {
  return keccak256(
    `${domainTypehash}${nameHash.slice(2)}${uintWord(BigInt(chainId))}${addressWord(permit2Address)}`,
  );
}
