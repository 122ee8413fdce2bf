import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { readLog } from "../../chain/logs-and-receipts.ts";
import type { RpcReader } from "../../chain/rpc/rpc.ts";
import type { NetworkConfig } from "../../config/serve-config.ts";
import { signAuthorization } from "../../methods/exact-eip3009/authorization.ts";
import { paymentOf } from "../../methods/exact-eip3009/eip3009-method.ts";
import { encodeTransfer } from "../../methods/exact-eip3009/on-chain/eip3009-transaction.ts";
import { decodeEvent, readUses } from "../../methods/on-chain/events.ts";
import { type Address, sameAddress } from "../../protocol/hex.ts";
import { type Asset, isPaidBy } from "../../protocol/networks.ts";
import { membersOf } from "../../util/json.ts";
import { type Check, ok, warning } from "./check.ts";

const name = "token logs";

/**
 * Checks that tokens other than USDC paid by EIP-3009 log a payment as its proof expects, and reject a used
 * authorization. The node simulates the same zero-value payment twice (`eth_simulateV1`), signed by a new key: this
 * moves no money and changes nothing. If the node or the token does not allow that, the check is skipped.
 */
export async function checkTokenLogs(
  { chainId, usdc, assets }: NetworkConfig,
  endpoints: readonly RpcReader[],
): Promise<readonly Check[]> {
  const [rpc] = endpoints;
  const others = assets.filter(
    (asset) => isPaidBy(asset, "eip3009") && !sameAddress(asset.address, usdc.address),
  );
  if (rpc === undefined) return [];
  const checks = await Promise.all(others.map((asset) => checkToken(asset, chainId, rpc)));
  return checks.flat();
}

async function checkToken(asset: Asset, chainId: number, rpc: RpcReader): Promise<readonly Check[]> {
  const { address } = asset;
  const payer = privateKeyToAccount(generatePrivateKey());
  const payee = privateKeyToAccount(generatePrivateKey()).address;
  const terms = { asset, chainId, to: payee, value: 0n, validBefore: 2n ** 40n };
  const data = encodeTransfer(paymentOf(address, await signAuthorization(payer, terms)));
  const call = { from: payee, to: address, data };
  const simulated = { blockStateCalls: [{ calls: [call, call] }] };
  const answers = await rpc
    .ask([{ method: "eth_simulateV1", params: [simulated, "latest"] }])
    .catch(() => []);
  const [first, again] = readCalls(answers[0]?.result);
  // If there is no such token, the asset's check reports it.
  if (first?.succeeded === true && first.logs.length === 0) return [];
  if (first?.succeeded !== true || again === undefined) {
    const detail = `how ${address} logs payments is unknown: it or the node does not allow a simulation`;
    return [{ name, status: "skipped", detail }];
  }
  const faults = [
    ...(isPaired(first.logs, address) ? [] : ["does not log Transfer right after AuthorizationUsed"]),
    ...(again.succeeded ? ["returns without an error for a used authorization"] : []),
  ];
  if (faults.length === 0) return [ok(name, `${address} logs payments as USDC does`)];
  return [
    warning(
      name,
      `${address} ${faults.join(", and ")}: what became of its payments cannot always be proven`,
      "Payments without proof stay undecided and are set aside. Take the token out of ASSETS, or pay it by Permit2.",
    ),
  ];
}

type SimulatedCall = { succeeded: boolean; logs: readonly unknown[] };

function readCalls(result: unknown): readonly SimulatedCall[] {
  const calls = Array.isArray(result) ? membersOf(result[0]).calls : undefined;
  if (!Array.isArray(calls)) return [];
  return calls.map((call: unknown) => {
    const { status, logs } = membersOf(call);
    return { succeeded: status === "0x1", logs: Array.isArray(logs) ? logs : [] };
  });
}

/** Returns true if the token logs one use directly followed by its transfer. Nodes may number simulated logs in any way. */
function isPaired(logs: readonly unknown[], token: Address): boolean {
  const events = logs.flatMap((log, logIndex) => {
    const read = readLog({ ...membersOf(log), logIndex: `0x${logIndex.toString(16)}` });
    return (read && decodeEvent({ ...read, logIndex })) ?? [];
  });
  return readUses(events).filter(({ use }) => sameAddress(use.emitter, token)).length === 1;
}
