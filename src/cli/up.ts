import { resolveFacilitatorContracts } from "../harness/addresses.ts";
import { startHarness } from "../harness/harness.ts";
import { networkNames } from "../protocol/networks.ts";
import { defineCommand } from "./command.ts";
import { payOnEveryNetwork } from "./demo.ts";
import { flag, oneOf, readNetworks, wholeNumber } from "./readers.ts";
import { describeUp } from "./up-report.ts";

const logLevels = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;

export const up = defineCommand({
  options: {
    networks: {
      describe: "only these networks, separated by commas",
      placeholder: "NAMES",
      example: "base,polygon",
      read: readNetworks,
      fallback: networkNames,
    },
    port: {
      describe: "port of the facilitator; 0 for any free one (default 4402)",
      placeholder: "PORT",
      env: "PORT",
      example: "4402",
      read: wholeNumber(0, 65_535),
      fallback: 4402,
    },
    host: {
      describe: "address to listen on (default 127.0.0.1)",
      placeholder: "ADDRESS",
      env: "HOST",
      example: "127.0.0.1",
      read: (text) => text,
      fallback: "127.0.0.1",
    },
    "contract-mainnet": {
      describe: "facilitator contract address on base, optimism and polygon",
      placeholder: "ADDRESS",
      env: "FACILITATOR_CONTRACT_MAINNET",
      read: (text): string | undefined => text,
      fallback: undefined,
    },
    "contract-testnet": {
      describe: "facilitator contract address on base-sepolia and optimism-sepolia",
      placeholder: "ADDRESS",
      env: "FACILITATOR_CONTRACT_TESTNET",
      read: (text): string | undefined => text,
      fallback: undefined,
    },
    "settle-wait": {
      describe: "how long a settle waits for its outcome, in milliseconds (default 80000 in v1, 45000 in v2)",
      placeholder: "MS",
      env: "SETTLE_WAIT_MS",
      example: "45000",
      read: (text): number | undefined => wholeNumber(100, 600_000)(text),
      fallback: undefined,
    },
    "log-level": {
      describe: `what the service logs to stderr: ${logLevels.join(", ")} (default warn)`,
      placeholder: "LEVEL",
      env: "LOG_LEVEL",
      example: "info",
      read: oneOf(logLevels),
      fallback: "warn",
    },
    "no-demo": flag("make no sample payments"),
    json: flag("print one line of JSON when ready, and nothing else"),
  },

  async run(values, { print, complain, interrupted }) {
    const startedAt = performance.now();
    const facilitatorContracts = resolveFacilitatorContracts({
      mainnet: values["contract-mainnet"],
      testnet: values["contract-testnet"],
    });
    const { createLogger } = await import("../logging/logger.ts");
    const harness = await startHarness({
      networks: values.networks,
      facilitatorContracts,
      host: values.host,
      port: values.port,
      settleWaitMs: values["settle-wait"],
      logger: createLogger(values["log-level"]),
      signal: interrupted,
    });
    try {
      const payments = values["no-demo"] ? undefined : await payOnEveryNetwork(harness.description);
      const readyMs = performance.now() - startedAt;
      if (values.json) print(JSON.stringify(harness.description));
      else print(await describeUp(harness.description, { payments, readyMs }));

      const failure = await untilEnd(harness.onFailure, interrupted);
      if (failure !== undefined) {
        complain(failure);
        return 1;
      }
      if (!values.json) print("\nStopping…");
      return 0;
    } finally {
      await harness.close();
    }
  },
});

/** Resolves at Ctrl-C, or with what went wrong when a node died. */
function untilEnd(
  onFailure: (listener: (error: Error) => void) => void,
  interrupted: AbortSignal,
): Promise<string | undefined> {
  return new Promise((resolve) => {
    onFailure((error) => resolve(error.message));
    if (interrupted.aborted) resolve(undefined);
    interrupted.addEventListener("abort", () => resolve(undefined));
  });
}
