import { encodeFunctionData, parseAbi } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import type { Address, Hex } from "../../../protocol/hex.ts";
import type { Asset } from "../../../protocol/networks.ts";

const abi = parseAbi([
  "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)",
  "function cancelAuthorization(address authorizer, bytes32 nonce, bytes signature)",
]);

/** An authorization, with numbers as signed or as decimal strings from JSON. */
type WrittenAuthorization = {
  from: Address;
  to: Address;
  nonce: Hex;
  value: bigint | string;
  validAfter: bigint | string;
  validBefore: bigint | string;
};

/** Calldata that submits an authorization directly to the token. Anyone who has seen the authorization can send it. */
export function encodeSubmission(authorization: WrittenAuthorization, signature: Hex): Hex {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  return encodeFunctionData({
    abi,
    functionName: "transferWithAuthorization",
    args: [from, to, BigInt(value), BigInt(validAfter), BigInt(validBefore), nonce, signature],
  });
}

/** Calldata that cancels an authorization by the account with this key. */
export async function encodeCancellation(
  payerKey: Hex,
  token: { asset: Asset; chainId: number },
  nonce: Hex,
): Promise<Hex> {
  const { name, version, address: verifyingContract } = token.asset;
  const payer = privateKeyToAccount(payerKey);
  const signature = await payer.signTypedData({
    domain: { name, version, chainId: token.chainId, verifyingContract },
    types: {
      CancelAuthorization: [
        { name: "authorizer", type: "address" },
        { name: "nonce", type: "bytes32" },
      ],
    },
    primaryType: "CancelAuthorization",
    message: { authorizer: payer.address, nonce },
  });
  return encodeFunctionData({
    abi,
    functionName: "cancelAuthorization",
    args: [payer.address, nonce, signature],
  });
}
