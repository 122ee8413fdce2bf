/**
 * This service beside the public reference facilitator, in turns, in one run: verifies over 50 connections, and settles
 * sent at once, with one operator key each, on nodes of the same kind; then starts and resets beside bare nodes. Every figure
 * is the median of the rounds. See docs/benchmarks.md.
 *
 * node scripts/bench/peers.ts [ROUNDS [SETTLES]] [--write]
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { type Load, load, median } from "./load.ts";
import { createReport, markdownTable, ms, sizesGiven } from "./markdown.ts";
import { measureStarts } from "./starts.ts";
import { signBodies, startUp, type Up } from "./up.ts";

const [rounds = 3, settles = 2_000] = sizesGiven();
/** Anvil's fourth account: published, and no account of the harness. */
const referenceKey = "0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6";

type Side = { name: string; url: string; pid: number; headers: Record<string, string>; up: Up };
type Row = { what: string; side: string } & Load;

const report = createReport("peers");
const rows: Row[] = [];
for (let round = 0; round < rounds; round++) {
  // The one that begins is warm no longer than the other: they take turns.
  for (const start of round % 2 === 0 ? [startOurs, startReference] : [startReference, startOurs]) {
    const { side, stop } = await start();
    const verifies = await bodiesOf(side, 200);
    const verify = (count: number) =>
      load({
        ...side,
        url: `${side.url}/verify`,
        bodies: Array.from({ length: count }, (_, index) => verifies[index % verifies.length] ?? ""),
        connections: 50,
        expect: '"isValid":true',
      });
    await verify(500);
    rows.push({
      what: "verify, 50 connections",
      side: side.name,
      ...(await verify(side.name === "this" ? 10_000 : 1_500)),
    });
    for (const count of [1, 200, settles]) {
      const bodies = await bodiesOf(side, count === 1 ? 20 : count);
      rows.push({
        what: count === 1 ? "settle, one at a time" : `settle, ${count} at once`,
        side: side.name,
        ...(await load({
          ...side,
          url: `${side.url}/settle`,
          bodies,
          connections: count,
          expect: '"success":true',
        })),
      });
    }
    await stop();
  }
}

report.add(
  `### Verify and settle\n\n${markdownTable(
    [...new Set(rows.map(({ what, side }) => `${what}|${side}`))].map((key) => {
      const [what = "", side = ""] = key.split("|");
      const some = rows.filter((row) => row.what === what && row.side === side);
      const pick = (read: (row: Row) => number) => median(some.map(read));
      const cpu = some.flatMap((row) => row.cpu ?? []);
      return {
        what,
        facilitator: side,
        succeeded: `${pick(({ good }) => good)} of ${some[0]?.count}`,
        "per second": Math.round(pick(({ perSecond }) => perSecond)),
        "p50 ms": ms(pick(({ p50 }) => p50)),
        "p99 ms": ms(pick(({ p99 }) => p99)),
        "CPU ms each": cpu.length === 0 ? "unknown" : median(cpu).toFixed(2),
      };
    }),
  )}`,
);
report.add(`### Starts and resets\n\n${markdownTable(await measureStarts())}`);
report.end();

async function startOurs(): Promise<{ side: Side; stop: () => Promise<void> }> {
  const up = await startUp(["--json", "--no-demo", "--networks", "base"]);
  const { facilitator, organization } = up.description;
  return {
    side: {
      name: "this",
      url: facilitator.url,
      pid: up.pid,
      headers: { authorization: organization.apiKey },
      up,
    },
    stop: up.stop,
  };
}

/** The reference, on a node of an `up` of its own, whose service has nothing to do. */
async function startReference(): Promise<{ side: Side; stop: () => Promise<void> }> {
  const up = await startUp(["--json", "--no-demo", "--networks", "base"]);
  const base = up.description.networks.base;
  if (base === undefined) throw new Error("base is not running");
  await fetch(base.rpcUrl, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "anvil_setBalance",
      params: ["0x90F79bf6EB2c4f870365E785982E1f101E93b906", "0x56bc75e2d63100000"],
    }),
  });
  const script = fileURLToPath(new URL("./reference-facilitator.ts", import.meta.url));
  const child = spawn(process.execPath, [script, base.rpcUrl, String(base.chainId), referenceKey], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [url] = await once(createInterface(child.stdout), "line");
  return {
    side: { name: "reference", url: String(url), pid: child.pid ?? 0, headers: {}, up },
    async stop() {
      const exited = once(child, "exit");
      child.kill("SIGTERM");
      await exited;
      await up.stop();
    },
  };
}

/** Payments in protocol version 2, which both speak. */
function bodiesOf({ up }: Side, count: number): Promise<string[]> {
  return signBodies(up.description, count, 2);
}
