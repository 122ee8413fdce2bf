import { createLocalRpc } from "../../chain/rpc/local-rpc.ts";
import type { Address, Hex } from "../../protocol/hex.ts";
import { harnessAccounts } from "../../published/accounts.ts";
import { testPayers } from "../../published/test-payers.ts";
import type { HarnessChain } from "../setup/chain.ts";

/** How a local chain stands. Balances are in the asset's smallest unit, gas money is in wei, both as decimal text. */
export type ChainState = {
  network: string;
  blockNumber: number;
  /** Unix seconds. */
  time: number;
  balances: Record<string, string>;
  operatorGasMoney: string;
};

const balanceOf = (account: Address): Hex => `0x70a08231${account.slice(2).toLowerCase().padStart(64, "0")}`;

/** Reads block, time and balances of local chains, those of the recipient among them. */
export function describeChains(chains: readonly HarnessChain[], recipient: Address): Promise<ChainState[]> {
  return Promise.all(chains.map((chain) => describeChain(chain, recipient)));
}

async function describeChain(
  { network, rpcUrl, asset }: HarnessChain,
  recipient: Address,
): Promise<ChainState> {
  const rpc = createLocalRpc(rpcUrl);
  const accounts = {
    ...Object.fromEntries(Object.entries(testPayers).map(([name, { address }]) => [name, address])),
    recipient,
  };
  const quantity = async (...call: Parameters<typeof rpc.request>) =>
    BigInt(String(await rpc.request(...call)));
  const [block, gasMoney, ...balances] = await Promise.all([
    rpc.request("eth_getBlockByNumber", "latest", false),
    quantity("eth_getBalance", harnessAccounts.operator.address, "latest"),
    ...Object.entries(accounts).map(async ([name, account]): Promise<[string, string]> => {
      const call = { to: asset.address, data: balanceOf(account) };
      return [name, (await quantity("eth_call", call, "latest")).toString()];
    }),
  ]);
  const read = (member: string) => Number(BigInt(String(Reflect.get(Object(block), member))));
  return {
    network: network.name,
    blockNumber: read("number"),
    time: read("timestamp"),
    balances: Object.fromEntries(balances),
    operatorGasMoney: gasMoney.toString(),
  };
}
