import { x402FacilitatorDeployedBytecode } from "../../contracts/x402Facilitator.ts";
import { checksumAddress } from "../../protocol/address.ts";
import { type Address, type Hex, isBytes, sameAddress } from "../../protocol/hex.ts";
import type { Rpc, RpcAnswer, RpcCall } from "../rpc/rpc.ts";
import { callViews, readViews } from "../view-calls.ts";
import { selector } from "../views.ts";
import { expectAnswer } from "./expect-answer.ts";
import { encodeHasRole, type Role } from "./roles.ts";

/** What stands at the address of the facilitator contract. */
export type ContractCode = "none" | "ours" | "other";

export type Membership = { role: Role; account: Address };

/** The facilitator contract as it stands on a chain. What it does not answer to is undefined. */
export type ContractState = {
  code: ContractCode;
  admin: Address | undefined;
  /** Seconds before a transfer of the admin role can be accepted. */
  adminDelay: number | undefined;
  paused: boolean | undefined;
  /** Whether each of the memberships that were asked about holds, in their order. */
  memberships: readonly (Membership & { holds: boolean | undefined })[];
};

const readGas = 100_000;
const views: readonly Hex[] = ["defaultAdmin()", "defaultAdminDelay()", "paused()"].map(selector);

/** Reads the contract at an address, with one request. */
export async function readContract(
  rpc: Pick<Rpc, "ask">,
  address: Address,
  memberships: readonly Membership[],
): Promise<ContractState> {
  return readContractState(await rpc.ask(contractCalls(address, memberships)), memberships);
}

/** The calls whose answers {@link readContractState} reads. */
export function contractCalls(address: Address, memberships: readonly Membership[]): readonly RpcCall[] {
  const probes = [...views, ...memberships.map(({ role, account }) => encodeHasRole(role, account))];
  return [
    { method: "eth_getCode", params: [address, "latest"] },
    callViews(
      probes.map((data) => ({ target: address, data })),
      readGas,
    ),
  ];
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
    code: code === "0x" ? "none" : sameAddress(code, x402FacilitatorDeployedBytecode) ? "ours" : "other",
    admin: admin === undefined ? undefined : checksumAddress(`0x${admin.slice(26)}`),
    adminDelay: adminDelay === undefined ? undefined : Number(BigInt(adminDelay)),
    paused: paused === undefined ? undefined : BigInt(paused) !== 0n,
    memberships: memberships.map((membership, index) => {
      const word = held[index];
      return { ...membership, holds: word === undefined ? undefined : BigInt(word) !== 0n };
    }),
  };
}
