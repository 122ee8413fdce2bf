#!/usr/bin/env node
import { enableCompileCache } from "node:module";

enableCompileCache();

const interruption = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () => {
    // The second one is for whoever cannot wait; the watchdog ends the nodes.
    if (interruption.signal.aborted) process.exit(130);
    interruption.abort();
  });
}

const { main } = await import("./main.ts");
process.exitCode = await main(process.argv.slice(2), {
  print: (text) => process.stdout.write(`${text}\n`),
  complain: (text) => process.stderr.write(`${text}\n`),
  env: process.env,
  interrupted: interruption.signal,
});
