import { isIPv6 } from "node:net";
import { assignRpcPorts } from "../../config/rpc-ports.ts";
import { askHarness, originOf } from "../../harness/control/description.ts";
import { payOnEveryNetwork } from "../../harness/control/pay.ts";
import type { News, RunningHarness } from "../../harness/run/running-harness.ts";
import { startHarness } from "../../harness/run/start-harness.ts";
import { openStateFile, requireSamePlaces } from "../../harness/run/state-file.ts";
import { isWarning, renderLogLine } from "../../observe/log/log-lines.ts";
import { KitError } from "../../util/errors.ts";
import { isLoopbackHost } from "../../util/loopback.ts";
import { self } from "../../util/self-command.ts";
import { defineCommand } from "../kit/command.ts";
import { requireWritable } from "../kit/files.ts";
import { checkUp, planUp, resolveForks, shopPortOf, upOptions } from "./up-options.ts";
import { describeAsEnv, describeUp } from "./up-report.ts";

export const up = defineCommand({
  options: upOptions,
  check: checkUp,

  async run(values, { print, printError, env, networks, takeSignals, program }) {
    requireWritable({ state: values.state });
    const isForMachines = values.json || values.env;
    const running = isForMachines ? await findRunning(values) : undefined;
    if (running !== undefined) {
      printError(`Of the x402-kit up that runs at ${originOf(running)}:`);
      print(values.json ? JSON.stringify(running) : describeAsEnv(running));
      return 0;
    }
    const fork = resolveForks(values.fork, values.networks, env);
    const closed = new AbortController();
    const interrupted = AbortSignal.any([takeSignals(), closed.signal]);
    const { createLogger } = await import("../../observe/log/logger.ts");
    const logger = createLogger(values["log-level"], {
      write(line) {
        // Warnings about payments that Ctrl-C interrupts do not interest the person who pressed it.
        if (interrupted.aborted && isWarning(line)) return;
        printError(isForMachines ? line.trimEnd() : renderLogLine(line));
      },
    });
    const state = values.state === undefined ? undefined : openStateFile(values.state);
    const plan = planUp(values, networks, state?.saved);
    const { isOpen } = plan;
    if (state?.saved !== undefined) requireSamePlaces(values.state ?? "", state.saved, plan);
    const tell = isForMachines ? printError : print;
    let printNews: (news: News) => void = () => {};
    const harness = await startHarness({
      ...plan,
      state,
      rpcPorts: assignRpcPorts(plan.networks, values["rpc-port"], values["rpc-ports"]),
      open: isOpen ? { onClose: () => closed.abort() } : undefined,
      corsOrigins: values["cors-origins"],
      fork,
      host: values.host,
      allowHosts: values["allow-host"],
      port: values.port,
      seed: values.seed,
      journal: values.journal,
      shop: values.shop === undefined ? undefined : { target: values.shop, port: shopPortOf(values) },
      studio: true,
      mcp: async (url) =>
        (await import("../mcp/http.ts")).createMcpRoute({ url, networkFile: env.NETWORKS_FILE, program }),
      onNews: values.quiet || isForMachines ? undefined : (news) => printNews(news),
      logger,
      signal: interrupted,
    });
    if (!isLoopbackHost(values.host)) {
      printError(
        `Warning: with --host ${values.host} everyone who reaches this machine can pay, fund and reset, and call the nodes: all keys are published.`,
      );
    }
    try {
      const ended = untilEnd(harness, interrupted);
      // Sample payments depend on the time, so seeded runs would differ.
      const hasDemo = !values["no-demo"] && values.seed === undefined && state?.saved === undefined;
      const paying = !hasDemo ? undefined : payOnEveryNetwork(harness.description);
      // Ctrl-C, or a node that dies, may come first; a later failure is then ignored.
      paying?.catch(() => {});
      await Promise.race([paying, ended]);
      if (!closed.signal.aborted) {
        interrupted.throwIfAborted();
        const payments = await paying;
        if (state !== undefined) tell(describeStart(values.state, state.saved !== undefined));
        if (values.json) {
          print(JSON.stringify(harness.description));
        } else if (values.env) {
          print(describeAsEnv(harness.description));
        } else {
          print(describeUp(harness.description, payments));
          if (isOpen)
            print("Requests without an API key act for the organization above; POST /close ends this.");
          print(`Ready in ${(performance.now() / 1000).toFixed(2)} s. Ctrl-C stops everything.`);
        }
        if (!values.quiet && (!isForMachines || values["log-format"] !== undefined)) {
          const { describeNews, followHarness, followShops } = await import("./follow.ts");
          if (!isForMachines) {
            printNews = (news) => print(describeNews(news));
            followShops(harness.app.server, print);
          }
          followHarness(harness, values["log-format"] === "json" ? JSON.stringify : undefined, print);
        }
        if (values["ready-line"] !== undefined) print(values["ready-line"]);
        await ended;
        if (!isForMachines) print("\nStopping…");
      }
    } catch (error) {
      await harness.close().catch((unsaved: Error) => printError(`Warning: ${unsaved.message}`));
      throw error;
    }
    await harness.close();
    if (state !== undefined) tell(`The session is saved in ${values.state}.`);
    return 0;
  },
});

/** Describes the start of a session that is saved to a file at its end. */
function describeStart(file: string | undefined, isThere: boolean): string {
  return isThere
    ? `The session goes on from ${file}: chains, ledger, story, faults and settings.`
    : `${file} is new: a session begins, and is saved there at the end.`;
}

/** The description of an `up` that already listens there; undefined if there is none. */
async function findRunning({ host, port }: { host: string; port: number }) {
  const known = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  const origin = `http://${isIPv6(known) ? `[${known}]` : known}:${port}`;
  // If something else listens there, the start reports it.
  return port === 0 ? undefined : askHarness(origin).catch(() => undefined);
}

/** Resolves on Ctrl-C or POST /close, and rejects if a node dies unexpectedly. */
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
  // Awaited later; until then, the death of a node shows as an error in the work in progress.
  promise.catch(() => {});
  return promise;
}
