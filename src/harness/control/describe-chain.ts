import { createLocalRpc } from "../../chain/rpc/local-rpc.ts";
import { balanceOf } from "../../chain/views.ts";
import type { ChainView } from "../../observe/studio/harness-views.ts";
import { harnessAccounts } from "../../payer/accounts.ts";
import { testPayers } from "../../payer/test-payers.ts";
import type { Address } from "../../protocol/hex.ts";
import type { HarnessChain } from "../setup/prepare-chain.ts";

/** Reads the block, time and balances of a local chain, including the recipient's. */
export async function describeChain(
  { network, rpcUrl, asset }: HarnessChain,
  recipient: Address,
): Promise<ChainView> {
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
      const { target: to, data } = balanceOf(asset.address, account);
      return [name, (await quantity("eth_call", { to, data }, "latest")).toString()];
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
