import { readNetworkData } from "../../config/network-file.ts";
import { readRpcUrl } from "../../config/rpc-ports.ts";
import { attempt, readOneOf } from "../../config/values.ts";
import { ConfigurationError } from "../../util/errors.ts";
import { defineCommand, option, requiredAddress, textOption } from "../kit/command.ts";

const gwei = 1_000_000_000n;

export const network = defineCommand({
  usesEnvFile: true,
  options: {
    name: textOption("NAME", "name of the network; for my-chain, its RPC URL is read from MY_CHAIN_RPC_URL", {
      example: "my-chain",
      required: true,
    }),
    token: requiredAddress("the token that is paid with"),
    tier: option(
      "TIER",
      "mainnet or testnet: which facilitator contract address, and so which CREATE2 salt, it uses",
      { read: readOneOf(["mainnet", "testnet"]), example: "mainnet", required: true },
    ),
    "native-coin": textOption("COIN", "what gas is paid in", { example: "AVAX", default: "ETH" }),
  },

  async run({ name, token: address, tier, "native-coin": nativeCoin }, { print, printError, env }) {
    const { readChainFacts } = await import("../../service/health/read-token.ts");
    const url = readRpcUrl(name, env, "to ask the chain");
    const { chainId, token, blockTimeMs, gasPrice } = await readChainFacts(url, address);
    const file = {
      name,
      caip2: `eip155:${chainId}`,
      tier,
      token,
      confirmations: tier === "mainnet" ? 12 : 1,
      blockTimeMs,
      // Ten times of what gas costs now, in whole gwei.
      maxFeeGwei: `${(gasPrice * 10n) / gwei + 1n}`,
      nativeCoin,
    };
    const read = attempt(() => readNetworkData(file));
    if ("problem" in read) {
      throw new ConfigurationError([{ name: "--name", problem: read.problem, example: "--name my-chain" }]);
    }
    print(JSON.stringify(file, null, 2));
    printError(
      "confirmations and maxFeeGwei are cautious guesses: review them before you settle real money.",
    );
    return 0;
  },
});
