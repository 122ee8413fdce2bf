import { readNetworkData } from "../../config/network-file.ts";
import { readRpcUrl } from "../../config/rpc-ports.ts";
import { attempt, readOneOf, readWholeNumber } from "../../config/values.ts";
import { recordFork } from "../../harness/api/record-fork.ts";
import { resolveFacilitatorContracts } from "../../harness/setup/addresses.ts";
import { renderLogLine } from "../../observe/log/log-lines.ts";
import { ConfigurationError } from "../../util/errors.ts";
import { self, selfWords } from "../../util/self-command.ts";
import {
  contractOptions,
  contractsOf,
  defineCommand,
  networkFileOption,
  networkOption,
  option,
  requiredAddress,
  textOption,
} from "../kit/command.ts";
import { requireWritable } from "../kit/files.ts";

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

  async run({ name, token: address, tier, "native-coin": nativeCoin }, { printError, env }) {
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
      // Ten times the current gas price, in whole gwei.
      maxFeeGwei: `${(gasPrice * 10n) / gwei + 1n}`,
      nativeCoin,
    };
    const read = attempt(() => readNetworkData(file));
    if ("problem" in read) {
      throw new ConfigurationError([{ name: "--name", problem: read.problem, example: "--name my-chain" }]);
    }
    printError(
      "confirmations and maxFeeGwei are cautious guesses: review them before you settle real money.",
    );
    return { json: file, text: JSON.stringify(file, null, 2) };
  },
});

export const forkRecord = defineCommand({
  options: {
    network: {
      ...networkOption,
      describe: "which network; it is read from its *_RPC_URL (the first URL, if there are several)",
    },
    out: textOption("FILE", "the file to write; compressed where the name ends with .gz", {
      example: "base.fork.json.gz",
      required: true,
    }),
    block: option("NUMBER", "the block to fork from (default the newest); older ones need an archive node", {
      read: readWholeNumber(0, 999_999_999_999),
      example: "21000000",
    }),
    ...contractOptions,
    ...networkFileOption,
  },
  usesEnvFile: true,

  async run({ network, out, block, ...values }, { printError, env, networks, takeSignals }) {
    requireWritable({ out });
    const url = readRpcUrl(network, env, `to fork ${network}`);
    const facilitatorContracts = resolveFacilitatorContracts(contractsOf(values));
    const { createLogger } = await import("../../observe/log/logger.ts");
    const { blockNumber, bytes } = await recordFork({
      network,
      knownNetworks: networks,
      url,
      facilitatorContracts,
      path: out,
      blockNumber: block === undefined ? undefined : BigInt(block),
      logger: createLogger("warn", { write: (line) => printError(renderLogLine(line)) }),
      signal: takeSignals(),
    });
    return {
      json: {
        network,
        blockNumber,
        out,
        bytes,
        command: [...selfWords, "up", "--networks", network, "--fork", `${network}=${out}`],
      },
      text: [
        `Recorded ${network} at block ${blockNumber}: ${out}, ${Math.ceil(bytes / 1024)} KB.`,
        "It starts with no network:",
        `  createHarness({ fork: { ${network.includes("-") ? `"${network}"` : network}: { recording: ${JSON.stringify(out)} } } })`,
        `  ${self} up --networks ${network} --fork ${network}=${out}`,
      ].join("\n"),
    };
  },
});
