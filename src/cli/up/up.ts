import { isLoopbackHost, logLevels, readOneOf } from "../../config/values.ts";
import { describeUnset } from "../../config/variables.ts";
import { type ConfigurationProblem, collectProblems, KitError } from "../../errors.ts";
import type { RunningHarness } from "../../harness/run/running-harness.ts";
import { startHarness } from "../../harness/run/start-harness.ts";
import { resolveFacilitatorContracts } from "../../harness/stage/addresses.ts";
import { payOnEveryNetwork } from "../commands/pay.ts";
import { contractsOf, defineCommand, flag, localOptions, variableOption } from "../kit/command.ts";
import { isWarning, renderLogLine } from "../kit/log-lines.ts";
import { renderPaymentLine } from "../kit/payment-line.ts";
import { self } from "../kit/terminal.ts";
import { readForkRequests, resolveForks } from "./fork-requests.ts";
import { describeUp } from "./up-report.ts";

const lineFormats = ["text", "json"] as const;

export const up = defineCommand({
  options: {
    ...localOptions,
    fork: {
      describe:
        "fork real chains: of the networks that are named, or of all whose *_RPC_URL is set; NAME=URL and NAME=RECORDING say what to fork",
      placeholder: "NAMES",
      example: "base,polygon=polygon.fork.json.gz",
      mayBeBare: true,
      read: readForkRequests,
    },
    "settle-wait": variableOption("SETTLE_WAIT_MS", {
      placeholder: "MS",
      describe: `how long a settle waits for its outcome, in milliseconds (default: ${describeUnset("SETTLE_WAIT_MS")})`,
    }),
    "log-level": variableOption("LOG_LEVEL", {
      placeholder: "LEVEL",
      describe: `what the service logs to stderr: ${logLevels.join(", ")}`,
      default: "warn",
      example: "info",
    }),
    journal: flag("keep a journal of what the service does, for connectHarness(…).journal"),
    "no-recovery": flag("leave direct submissions to the token stranded, as `serve` without a recoverer"),
    "no-demo": flag("make no sample payments"),
    quiet: flag("print no line for each verify and settle"),
    "log-format": {
      describe: `how these lines are written: ${lineFormats.join(" or ")}; with --json they are left out unless this is given`,
      placeholder: "FORMAT",
      example: "json",
      read: readOneOf<(typeof lineFormats)[number]>(lineFormats),
    },
    json: flag("print one line of JSON when ready, and nothing else"),
  },

  check(values) {
    const problems: ConfigurationProblem[] = [];
    collectProblems(problems, () => resolveFacilitatorContracts(contractsOf(values)));
    return problems;
  },

  async run(values, { print, printError, env, takeSignals }) {
    const fork = resolveForks(values.fork, values.networks, env);
    const interrupted = takeSignals();
    const { createLogger } = await import("../../logging/logger.ts");
    const logger = createLogger(values["log-level"], {
      write(line) {
        // Payments that Ctrl-C cuts short are no news to the person who pressed it.
        if (interrupted.aborted && isWarning(line)) return;
        printError(values.json ? line.trimEnd() : renderLogLine(line));
      },
    });
    const facilitatorContracts = resolveFacilitatorContracts(contractsOf(values));
    const harness = await startHarness({
      networks: values.networks,
      facilitatorContracts,
      fork,
      host: values.host,
      port: values.port,
      settleWaitMs: values["settle-wait"],
      journal: values.journal,
      recovery: !values["no-recovery"],
      studio: true,
      logger,
      signal: interrupted,
    });
    if (!isLoopbackHost(values.host)) {
      printError(
        `Warning: with --host ${values.host} everyone who reaches this machine can pay, fund and reset: all keys are published.`,
      );
    }
    try {
      const ended = untilEnd(harness, interrupted);
      const paying = values["no-demo"] ? undefined : payOnEveryNetwork(harness.description);
      // Ctrl-C, or a node that died, may come first; this then fails unobserved.
      paying?.catch(() => {});
      await Promise.race([paying, ended]);
      interrupted.throwIfAborted();
      const payments = await paying;
      if (values.json) {
        print(JSON.stringify(harness.description));
      } else {
        print(await describeUp(harness.description, payments));
        print(`Ready in ${(performance.now() / 1000).toFixed(2)} s. Ctrl-C stops everything.`);
      }
      if (!values.quiet && (!values.json || values["log-format"] !== undefined)) {
        const { followPayments } = await import("./follow-payments.ts");
        followPayments(facilitatorContracts, (line) =>
          print(values["log-format"] === "json" ? JSON.stringify(line) : renderPaymentLine(line)),
        );
      }
      await ended;
      if (!values.json) print("\nStopping…");
      return 0;
    } finally {
      await harness.close();
    }
  },
});

/** Resolves at Ctrl-C, and rejects when a node dies that was not asked to. */
function untilEnd(harness: RunningHarness, interrupted: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  harness.onFailure(({ message, hints }) =>
    reject(
      new KitError(message, {
        hints: [
          `Everything was stopped, and the chains' states are gone. Start again: ${self} up`,
          ...(hints.length > 0 ? ["What the node wrote last:", ...hints.map((line) => `  ${line}`)] : []),
        ],
      }),
    ),
  );
  if (interrupted.aborted) resolve();
  interrupted.addEventListener("abort", () => resolve());
  // Awaited only once everything is said; until then a failure shows in what is being done.
  promise.catch(() => {});
  return promise;
}
