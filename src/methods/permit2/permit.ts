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
 * The message that payers sign for Permit2: a `PermitWitnessTransferFrom` of its SignatureTransfer, to a proxy of x402 that may
 * only pay the address in the witness. Sources: Uniswap/permit2, and the contracts of x402.
 */

/** The spenders that payers sign for: of scheme “exact” and of scheme “upto”. */
export const exactProxyAddress: Address = "0x402085c248EeA27D92E8b30b2C58ed07f9E20001";
export const uptoProxyAddress: Address = "0x4020A4f3b7b90ccA423B9fabCc0CE57C6C240002";

/** The signed members, and the payer, whom the signature does not name. Times are unix seconds, both inclusive. */
export type Permit = {
  from: Address;
  token: Address;
  /** In the token's smallest unit: the amount of scheme “exact”, the most of scheme “upto”. */
  amount: bigint;
  spender: Address;
  /** Used once by this payer, for all tokens and spenders. */
  nonce: bigint;
  deadline: bigint;
  /** Where the proxy sends it. */
  to: Address;
  /** Who alone may submit it, and say how much is taken; only of scheme “upto”. */
  facilitator?: Address | undefined;
  validAfter: bigint;
};

const tokenPermissions = "TokenPermissions(address token,uint256 amount)";

/** The types of the witness, with their members in this order. */
const witnesses = {
  exact: "Witness(address to,uint256 validAfter)",
  upto: "Witness(address to,address facilitator,uint256 validAfter)",
} as const;

/** The type of the whole message with a witness of this type. */
export function primaryType(witness: string): string {
  return `PermitWitnessTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,Witness witness)${tokenPermissions}${witness}`;
}

/** The type hashes, each of the type string of EIP-712. */
export const permitTypehashes = {
  permitted: keccak256Text(tokenPermissions),
  witness: { exact: keccak256Text(witnesses.exact), upto: keccak256Text(witnesses.upto) },
  primary: {
    exact: keccak256Text(primaryType(witnesses.exact)),
    upto: keccak256Text(primaryType(witnesses.upto)),
  },
} as const;

/** The EIP-712 hash of what may be taken. */
export function permittedHash({ token, amount }: Pick<Permit, "token" | "amount">): Hex {
  return keccak256(`${permitTypehashes.permitted}${addressWord(token)}${uintWord(amount)}`);
}

/** The EIP-712 hash of what the proxy of x402 must do with it. */
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

/** The EIP-712 hash of a permit, whatever the domain. */
export function permitHash(permit: Permit): Hex {
  const { exact, upto } = permitTypehashes.primary;
  return permitHashOf(permit, permit.facilitator === undefined ? exact : upto, witnessHash(permit));
}

/** The same with a witness of any kind, by its own hash. */
export function permitHashOf(permit: Permit, typehash: Hex, witness: Hex): Hex {
  return keccak256(`${typehash}${wordsOf(permit)}${witness.slice(2)}`);
}

/** The members beside the witness, as they are hashed. */
export function wordsOf(permit: Permit): string {
  const { spender, nonce, deadline } = permit;
  return `${permittedHash(permit).slice(2)}${addressWord(spender)}${uintWord(nonce)}${uintWord(deadline)}`;
}

/** The EIP-712 digest that the payer's signature is over. */
export function permitDigest(separator: Hex, permit: Permit): Hex {
  return digestUnder(separator, permitHash(permit));
}

/** The EIP-712 types of a permit, in the form that wallets and viem take. */
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
