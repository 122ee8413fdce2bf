import { readRpcUrl } from "../../config/rpc-ports.ts";
import { readWholeNumber } from "../../config/values.ts";
import { recordFork } from "../../harness/api/record-fork.ts";
import { resolveFacilitatorContracts } from "../../harness/setup/addresses.ts";
import { renderLogLine } from "../../observe/log/log-lines.ts";
import { self } from "../../util/self-command.ts";
import {
  contractOptions,
  contractsOf,
  defineCommand,
  networkFileOption,
  networkOption,
  option,
  textOption,
} from "../kit/command.ts";
import { requireWritable } from "../kit/files.ts";

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

  async run({ network, out, block, ...values }, { print, printError, env, networks, takeSignals }) {
    requireWritable({ out });
    const url = readRpcUrl(network, env, `to fork ${network}`);
    const facilitatorContracts = resolveFacilitatorContracts(contractsOf(values));
    const { createLogger } = await import("../../observe/log/logger.ts");
    const { blockNumber, bytes } = await recordFork({
      ...{ network, knownNetworks: networks, url, facilitatorContracts, path: out },
      blockNumber: block === undefined ? undefined : BigInt(block),
      logger: createLogger("warn", { write: (line) => printError(renderLogLine(line)) }),
      signal: takeSignals(),
    });
    print(
      [
        `Recorded ${network} at block ${blockNumber}: ${out}, ${Math.ceil(bytes / 1024)} KB.`,
        "It starts with no network:",
        `  createHarness({ fork: { ${network.includes("-") ? `"${network}"` : network}: { recording: ${JSON.stringify(out)} } } })`,
        `  ${self} up --networks ${network} --fork ${network}=${out}`,
      ].join("\n"),
    );
    return 0;
  },
});
