#!/usr/bin/env node
import { inspect, styleText } from "node:util";
import type { Terminal } from "./kit/terminal.ts";

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 18)) {
  process.stderr.write(
    `x402-kit needs Node 22.18 or newer, and this is ${process.versions.node}\n` +
      "  For this project: npm install --save-dev node@24; once: npx -p node@24 x402-kit …\n",
  );
  process.exit(1);
}
const { Interruption, onParentEnd } = await import("./kit/terminal.ts");
const { escapeControlsInText } = await import("../util/text.ts");
const { enterCallersFolder, isRunByNpm } = await import("../util/self-command.ts");
const { main } = await import("./main.ts");

enterCallersFolder();

/** A second Ctrl-C within this time is the same one: npm forwards the signal that the terminal sent to the whole group. */
const sameSignalMs = 500;

const interruption = new AbortController();

function takeSignals(): AbortSignal {
  let interruptedAt: number | undefined;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      // A later one ends the process at once; the watchdog ends the nodes.
      if (interruptedAt !== undefined && performance.now() - interruptedAt > sameSignalMs) process.exit(130);
      interruptedAt ??= performance.now();
      interruption.abort(new Interruption());
    });
  }
  // If npm or npx is ended by a signal, it leaves the command running; whoever stops npx by its pid means this process.
  if (isRunByNpm) onParentEnd(() => interruption.abort(new Interruption()));
  return interruption.signal;
}

let crashed = false;
process.on("uncaughtException", (error) => {
  const text = error instanceof Error ? (error.stack ?? error.message) : inspect(error);
  process.stderr.write(`x402-kit: unforeseen: ${escapeControlsInText(text)}\n`);
  crashed = true;
  // Shuts down as after Ctrl-C so that nothing is left behind, but within a time limit.
  interruption.abort(new Interruption());
  setTimeout(() => process.exit(1), 5_000).unref();
});
// The reader of the output may be gone (a closed terminal, `| head`), which is no reason to stop serving.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});

const terminal: Terminal = {
  print: (text) => process.stdout.write(`${text}\n`),
  printError: (text) => process.stderr.write(`${text}\n`),
  // As decided by Node, which respects NO_COLOR and FORCE_COLOR.
  hasColours: styleText("bold", "x", { stream: process.stdout }) !== "x",
  env: process.env,
  takeSignals,
};
const exitCode = await main(process.argv.slice(2), terminal);
process.exitCode = crashed ? 1 : exitCode;
