import { startDeployedShop } from "../../test/support/serve/shop.ts";

/** A node of base with the contract deployed as on a live chain, and no proxy in front of it. */
export async function startBareChain() {
  const { deployed, chain, key } = await startDeployedShop();
  const { network, rpcUrl, asset, setBalance, node } = chain;
  const { chainId, caip2 } = network;
  return {
    setBalance,
    nodePid: node.pid,
    networks: {
      base: {
        chainId,
        caip2,
        rpcUrl,
        asset,
        facilitatorContract: deployed.contract,
        payTo: deployed.contract,
      },
    },
    // Anvil mines for each transaction and once a second, so a second confirmation would only measure waiting.
    variables: {
      ...deployed.variables,
      CONFIRMATIONS: "base=1",
      PAY_TO: "any",
      RATE_LIMIT_KEY: "100000/1000000",
      // A local node has far higher fees than base, so the default budget would be used up by some 1,000 payments.
      DAILY_GAS_BUDGET: "base=none",
    },
    apiKey: key,
    stop: deployed.stop,
  };
}
