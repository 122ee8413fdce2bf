import { type Address, addressWord, type Hex, keccak256Text } from "../../protocol/hex.ts";
import { selector } from "../views.ts";

/** The roles of the facilitator contract besides its admin. */
export const roles = {
  operator: keccak256Text("OPERATOR_ROLE"),
  recoverer: keccak256Text("RECOVERER_ROLE"),
  pauser: keccak256Text("PAUSER_ROLE"),
} as const satisfies Record<string, Hex>;

export type Role = keyof typeof roles;

const hasRole = selector("hasRole(bytes32,address)");

/** Asks whether an account holds a role. */
export function encodeHasRole(role: Role, account: Address): Hex {
  return `${hasRole}${roles[role].slice(2)}${addressWord(account)}`;
}

const changes = {
  grant: selector("grantRole(bytes32,address)"),
  revoke: selector("revokeRole(bytes32,address)"),
};

/** Grants an account the role of an operator, or revokes it. For the admin. */
export function encodeOperatorChange(change: "grant" | "revoke", account: Address): Hex {
  return `${changes[change]}${roles.operator.slice(2)}${addressWord(account)}`;
}
