import {
  type Address,
  addressWord,
  type Hex,
  keccak256,
  keccak256Text,
  uintWord,
} from "../../protocol/hex.ts";
import { digestUnder } from "../eip712.ts";

export { permit2Address, permit2Separator } from "../permit2-domain.ts";

/*
 * The message that payers sign for Permit2: a `PermitWitnessTransferFrom` (SignatureTransfer) whose spender is an x402
 * proxy, which can only pay the address in the witness. Sources: Uniswap/permit2, and the x402 contracts.
 */

/** The spenders that payers sign for, by scheme: the x402 proxies. */
export const exactProxyAddress: Address = "0x402085c248EeA27D92E8b30b2C58ed07f9E20001";
export const uptoProxyAddress: Address = "0x4020A4f3b7b90ccA423B9fabCc0CE57C6C240002";

/** The signed fields, and the payer, who is not part of the signed message. Times are unix seconds, both inclusive. */
export type Permit = {
  from: Address;
  token: Address;
  /** In the token's smallest unit: the exact amount in scheme "exact", the maximum in scheme "upto". */
  amount: bigint;
  spender: Address;
  /** Can be used once by this payer, across all tokens and spenders. */
  nonce: bigint;
  deadline: bigint;
  /** The address that the proxy pays. */
  to: Address;
  /** The only account that may submit it and choose the amount; scheme "upto" only. */
  facilitator?: Address | undefined;
  validAfter: bigint;
};

const tokenPermissions = "TokenPermissions(address token,uint256 amount)";

/** The witness types; the order of their fields matters. */
const witnesses = {
  exact: "Witness(address to,uint256 validAfter)",
  upto: "Witness(address to,address facilitator,uint256 validAfter)",
} as const;

/** The EIP-712 type of the whole message with a witness of this type. */
export function primaryType(witness: string): string {
  return `PermitWitnessTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,Witness witness)${tokenPermissions}${witness}`;
}

/** The EIP-712 type hashes. */
export const permitTypehashes = {
  permitted: keccak256Text(tokenPermissions),
  witness: { exact: keccak256Text(witnesses.exact), upto: keccak256Text(witnesses.upto) },
  primary: {
    exact: keccak256Text(primaryType(witnesses.exact)),
    upto: keccak256Text(primaryType(witnesses.upto)),
  },
} as const;

/** The EIP-712 hash of the `permitted` field. */
export function permittedHash({ token, amount }: Pick<Permit, "token" | "amount">): Hex {
  return keccak256(`${permitTypehashes.permitted}${addressWord(token)}${uintWord(amount)}`);
}

/** The EIP-712 hash of the witness, which tells the x402 proxy whom to pay. */
export function witnessHash({
  to,
  facilitator,
  validAfter,
}: Pick<Permit, "to" | "facilitator" | "validAfter">): Hex {
  return facilitator === undefined
    ? keccak256(`${permitTypehashes.witness.exact}${addressWord(to)}${uintWord(validAfter)}`)
    : keccak256(
        `${permitTypehashes.witness.upto}${addressWord(to)}${addressWord(facilitator)}${uintWord(validAfter)}`,
      );
}

/** The EIP-712 struct hash of a permit. */
export function permitHash(permit: Permit): Hex {
  const { exact, upto } = permitTypehashes.primary;
  return permitHashOf(permit, permit.facilitator === undefined ? exact : upto, witnessHash(permit));
}

/** The struct hash of a permit with any witness, given the type hash and the witness hash. */
export function permitHashOf(permit: Permit, typehash: Hex, witness: Hex): Hex {
  return keccak256(`${typehash}${wordsOf(permit)}${witness.slice(2)}`);
}

/** The fields other than the witness, as they are hashed. */
export function wordsOf(permit: Permit): string {
  const { spender, nonce, deadline } = permit;
  return `${permittedHash(permit).slice(2)}${addressWord(spender)}${uintWord(nonce)}${uintWord(deadline)}`;
}

/** The EIP-712 digest that the payer signs. */
export function permitDigest(separator: Hex, permit: Permit): Hex {
  return digestUnder(separator, permitHash(permit));
}

/** The EIP-712 types of a permit, in the format of wallets and viem. */
export function permitTypes({ facilitator }: Pick<Permit, "facilitator">) {
  return {
    PermitWitnessTransferFrom: [
      { name: "permitted", type: "TokenPermissions" },
      { name: "spender", type: "address" },
      { name: "nonce", type: "uint256" },
      { name: "deadline", type: "uint256" },
      { name: "witness", type: "Witness" },
    ],
    TokenPermissions: [
      { name: "token", type: "address" },
      { name: "amount", type: "uint256" },
    ],
    Witness: [
      { name: "to", type: "address" },
      ...(facilitator === undefined ? [] : [{ name: "facilitator", type: "address" }]),
      { name: "validAfter", type: "uint256" },
    ],
  };
}
