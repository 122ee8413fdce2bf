import { findFormerVersion } from "../../contracts/former-versions.ts";
import { x402FacilitatorDeployedBytecode } from "../../contracts/x402Facilitator.ts";
import {
  type Address,
  addressWord,
  checksumAddress,
  type Hex,
  isBytes,
  keccak256Text,
  sameAddress,
} from "../../protocol/hex.ts";
import { KitError } from "../../util/errors.ts";
import { self } from "../../util/self-command.ts";
import type { RpcAnswer, RpcCall, RpcReader } from "../rpc/rpc.ts";
import { callViews, hasRole, readViews, selector } from "../views.ts";
import { expectAnswer, type OnChain } from "./endpoints.ts";
import type { ContractCall } from "./priced-transaction.ts";

/** The roles of the facilitator contract besides its admin. */
export const roles = {
  operator: keccak256Text("OPERATOR_ROLE"),
  recoverer: keccak256Text("RECOVERER_ROLE"),
  pauser: keccak256Text("PAUSER_ROLE"),
} as const satisfies Record<string, Hex>;

export type Role = keyof typeof roles;

const changes = {
  grant: selector("grantRole(bytes32,address)"),
  revoke: selector("revokeRole(bytes32,address)"),
};

/** Encodes the call that grants or revokes an account's operator role. Only the admin can make it. */
export function encodeOperatorChange(change: "grant" | "revoke", account: Address): Hex {
  return `${changes[change]}${roles.operator.slice(2)}${addressWord(account)}`;
}

/**
 * The code at the address of the facilitator contract. `former` is an earlier version that lacks functions of this
 * one; an earlier version that lacks none counts as `ours`.
 */
export type ContractCode = "none" | "ours" | "former" | "other";

export type Membership = { role: Role; account: Address };

/** Returns the memberships that accounts should have. */
export function membershipsOf(accounts: {
  operators: readonly Address[];
  recoverer: Address | undefined;
  pauser?: Address | undefined;
}): readonly Membership[] {
  const { operators, recoverer, pauser } = accounts;
  return [
    ...operators.map((account) => ({ role: "operator", account }) as const),
    ...(recoverer === undefined ? [] : [{ role: "recoverer", account: recoverer } as const]),
    ...(pauser === undefined ? [] : [{ role: "pauser", account: pauser } as const]),
  ];
}

/** The facilitator contract's state on a chain. Undefined if it did not answer a call. */
export type ContractState = {
  code: ContractCode;
  admin: Address | undefined;
  /** The delay before a transfer of the admin role can be accepted, in seconds. */
  adminDelay: number | undefined;
  paused: boolean | undefined;
  /** The requested memberships, in order; `holds` is true if the account has the role. */
  memberships: readonly (Membership & { holds: boolean | undefined })[];
};

const readGas = 100_000;
const views: readonly Hex[] = ["defaultAdmin()", "defaultAdminDelay()", "paused()"].map(selector);

export async function readContract(
  rpc: RpcReader,
  address: Address,
  memberships: readonly Membership[],
): Promise<ContractState> {
  return readContractState(await rpc.ask(contractCalls(address, memberships)), memberships);
}

/** Returns the calls whose results {@link readContractState} parses. */
export function contractCalls(address: Address, memberships: readonly Membership[]): readonly RpcCall[] {
  const probes = [
    ...views.map((data) => ({ target: address, data })),
    ...memberships.map(({ role, account }) => hasRole(address, roles[role], account)),
  ];
  return [{ method: "eth_getCode", params: [address, "latest"] }, callViews(probes, readGas)];
}

/** @throws UndeterminedError when an answer cannot be used */
export function readContractState(
  [codeAnswer, probesAnswer]: readonly RpcAnswer[],
  memberships: readonly Membership[],
): ContractState {
  const code = expectAnswer("the contract's code", codeAnswer, (result) =>
    isBytes(result) ? result : undefined,
  );
  const probed = expectAnswer("the contract's state", probesAnswer, (result) =>
    readViews(result, views.length + memberships.length),
  );
  const [admin, adminDelay, paused, ...held] = probed.results.map(({ word }) => word);
  return {
    code: readCode(code),
    admin: admin === undefined ? undefined : checksumAddress(`0x${admin.slice(26)}`),
    adminDelay: adminDelay === undefined ? undefined : Number(BigInt(adminDelay)),
    paused: paused === undefined ? undefined : BigInt(paused) !== 0n,
    memberships: memberships.map((membership, index) => {
      const word = held[index];
      return { ...membership, holds: word === undefined ? undefined : BigInt(word) !== 0n };
    }),
  };
}

function readCode(code: Hex): ContractCode {
  if (code === "0x") return "none";
  if (sameAddress(code, x402FacilitatorDeployedBytecode)) return "ours";
  const former = findFormerVersion(code);
  if (former === undefined) return "other";
  return former.isComplete ? "ours" : "former";
}

export type RoleChange = { change: "grant" | "revoke"; account: Address };

/** A change with the call that makes it; undefined if nothing is left to change. */
export type PlannedChange = RoleChange & { call: ContractCall | undefined };

/** The requested changes of operators, with what is left to do for each. */
export type OperatorPlan = { contract: Address; admin: Address; changes: readonly PlannedChange[] };

/**
 * Plans the changes of operators that are still to be made.
 *
 * @throws KitError when there is no facilitator contract at the address
 */
export async function planOperatorChanges(
  { rpc, network }: OnChain,
  changes: readonly RoleChange[],
): Promise<OperatorPlan> {
  const { facilitatorContract: contract, name } = network;
  const state = await readContract(
    rpc,
    contract,
    changes.map(({ account }) => ({ role: "operator", account })),
  );
  if (state.admin === undefined || state.memberships.some(({ holds }) => holds === undefined)) {
    throw new KitError(`There is no facilitator contract at ${contract} on ${name}`, {
      hints: [`Deploy it first: ${self} deploy --network ${name}`],
    });
  }
  return {
    contract,
    admin: state.admin,
    changes: changes.map(({ change, account }, index) => {
      const isOperator = state.memberships[index]?.holds === true;
      const isDone = isOperator === (change === "grant");
      const call = isDone ? undefined : { to: contract, data: encodeOperatorChange(change, account) };
      return { change, account, call };
    }),
  };
}

/** Returns true if an account may make the changes of a plan. */
export function isAdmin({ admin }: OperatorPlan, account: Address | undefined): boolean {
  return account !== undefined && sameAddress(admin, account);
}
