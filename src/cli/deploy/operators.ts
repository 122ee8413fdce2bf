import {
  isAdmin,
  type OperatorPlan,
  planOperatorChanges,
  type RoleChange,
} from "../../chain/deploy/contract-state.ts";
import type { OnChain } from "../../chain/deploy/endpoints.ts";
import {
  type ContractCall,
  priceTransaction,
  readBalance,
  sendTransaction,
} from "../../chain/deploy/priced-transaction.ts";
import type { Signer } from "../../chain/signing/signer.ts";
import { contractVariables } from "../../config/variables.ts";
import type { Address, Hex } from "../../protocol/hex.ts";
import type { Network } from "../../protocol/networks.ts";
import { formatCoins } from "../../protocol/token-units.ts";
import { ConfigurationError, KitError } from "../../util/errors.ts";
import type { Outcome } from "../kit/command.ts";
import { costRows, operatorsAsJson, rows } from "./report.ts";
import { confirm, connectToNetwork, type DeploySession, findPublishedAccounts } from "./session.ts";

/** Grants and revokes the role of an operator, where that is not so already. */
export async function changeOperators(
  session: DeploySession,
  given: { contract: Address | undefined; changes: readonly RoleChange[] },
): Promise<Outcome | number> {
  const { network, signer, mode, json, terminal } = session;
  const { print, printError } = terminal;
  const granted = given.changes.filter(({ change }) => change === "grant");
  findPublishedAccounts(session, [
    ...(signer === undefined ? [] : [{ name: "DEPLOYER_PRIVATE_KEY", address: signer.address }]),
    ...granted.map(({ account }) => ({ name: "--grant-operator", address: account })),
  ]);
  const onChain = await connectToNetwork(session, given.contract ?? configuredContract(session));
  const plan = await planOperatorChanges(onChain, given.changes);
  const calls = plan.changes.flatMap(({ call }) => call ?? []);
  const sends = mode !== "dry run" && signer !== undefined && isAdmin(plan, signer.address);

  if (!json) print(await renderChanges(network, onChain, plan, sends));
  if (calls.length === 0) {
    return { json: operatorsAsJson(network, plan, "in place"), text: "Nothing was to be done." };
  }
  if (mode === "dry run") {
    return { json: operatorsAsJson(network, plan, "planned"), text: "Dry run: nothing was sent." };
  }
  if (!sends) {
    throw new KitError(`Only the admin, ${plan.admin}, may change operators; nothing was sent`, {
      hints: ["Set DEPLOYER_PRIVATE_KEY to its key, or have it send the calls that --dry-run prints."],
    });
  }
  if (!(await confirm(session, `Change the operators on ${network.name}?`))) {
    printError("Nothing was sent.");
    return 1;
  }
  const hashes = await sendAll(onChain, signer, calls, terminal.takeSignals());
  return {
    json: operatorsAsJson(network, plan, "changed", hashes),
    text: `Changed by ${hashes.join(", ")}.`,
  };
}

async function sendAll(
  onChain: OnChain,
  signer: Signer,
  calls: readonly ContractCall[],
  interrupted: AbortSignal,
): Promise<Hex[]> {
  const hashes: Hex[] = [];
  for (const call of calls) {
    const transaction = await priceTransaction(onChain, signer.address, call);
    const { hash } = await sendTransaction(onChain, signer, transaction, interrupted);
    hashes.push(hash);
  }
  return hashes;
}

function configuredContract({ network, environment }: DeploySession): Address {
  const configured = environment.contracts[network.tier];
  if (configured !== undefined) return configured;
  throw new ConfigurationError([
    {
      name: contractVariables[network.tier],
      problem: "is needed to know whose operators to change, or --contract",
      example: "0x4020000000000000000000000000000000000001",
    },
  ]);
}

/** What a person reads before anything is sent; without the admin's key, the calls that the admin has to send. */
async function renderChanges(
  network: Network,
  onChain: OnChain,
  { contract, admin, changes }: OperatorPlan,
  sends: boolean,
): Promise<string> {
  const calls = changes.flatMap(({ call }) => call ?? []);
  const [first] = calls;
  const describe = ({ change, call }: OperatorPlan["changes"][number]) =>
    call === undefined ? `${change === "grant" ? "is one" : "is none"} already` : `${change} the role`;
  return [
    `Operators of the facilitator contract on ${network.name} (chain ${network.chainId})`,
    "",
    ...rows([
      ["contract", contract],
      [
        "admin",
        sends ? `${admin}, which has ${formatCoins(await readBalance(onChain.rpc, admin), network)}` : admin,
      ],
      ...changes.map((one): [string, string] => [one.account, describe(one)]),
      ...(first === undefined ? [] : costRows(network, await priceTransaction(onChain, admin, first))),
    ]),
    ...(calls.length > 1 ? [`  ${calls.length} transactions, of which each costs about that`] : []),
    ...(calls.length > 0 && !sends
      ? ["", "What the admin has to send, for example from a multi-signature wallet:"]
      : []),
    ...(sends ? [] : calls.map(({ to, data }) => `  to ${to}  data ${data}`)),
    "",
  ].join("\n");
}
