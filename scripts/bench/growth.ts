/**
 * Measures if costs grow with use: many settles and verifies in a row, then the ledger's work with few and with very
 * many settlements, on SQLite and on Postgres. See docs/benchmarks.md.
 *
 * node scripts/bench/growth.ts [SETTLEMENTS [SETTLES [VERIFIES]]] [--write]
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compose } from "../../test/support/composition.ts";
import { apiKey, startServiceProcess } from "../../test/support/service-process.ts";
import { measureLedgers, sizeOf } from "./growth-ledger.ts";
import { cpuMs, type Load, load } from "./load.ts";
import { createReport, markdownTable, sizesGiven } from "./markdown.ts";

/** Concurrent settles; with fewer, the transactions would not be full. */
const atOnce = 1_000;
const verifyConnections = 50;
/** The number of rows in the table of verifies. */
const parts = 20;

const [settlements = 1_000_000, settles = 20_000, verifies = 200_000] = sizesGiven();

const report = createReport("growth");
await measureRun();
await measureLedgers(report, settlements);
report.end();

/**
 * Settles in rounds of a thousand and then verifies, with one service on a SQLite file: the rate of each round, the CPU
 * of service and node per request, the service's memory, and the growth of the database.
 */
async function measureRun(): Promise<void> {
  const composition = await compose();
  const folder = mkdtempSync(join(tmpdir(), "x402-kit-growth-"));
  const file = join(folder, "ledger.db");
  const service = await startServiceProcess(composition, `sqlite:${file}`);
  const pid = service.child.pid ?? 0;
  const nodePid = composition.chain.node.pid;
  const sign = (count: number) =>
    Promise.all(
      Array.from({ length: count }, async () => JSON.stringify(await composition.payment("funded", 3_600))),
    );

  const round = async (operation: "settle" | "verify", bodies: readonly string[], connections: number) => {
    const before = cpuMs(nodePid) ?? Number.NaN;
    const result = await load({
      url: `${service.origin}/v1/${operation}`,
      headers: { authorization: apiKey },
      bodies,
      connections,
      expect: operation === "settle" ? '"success":true' : '"isValid":true',
      pid,
    });
    return {
      ...result,
      mib: residentMiB(pid),
      nodeCpu: ((cpuMs(nodePid) ?? Number.NaN) - before) / bodies.length,
    };
  };

  await round("settle", await sign(atOnce), atOnce);
  const settled: Row[] = [];
  for (let done = 0; done < settles; done += atOnce) {
    const bodies = await sign(Math.min(atOnce, settles - done));
    const sizeBefore = sizeOf(file);
    const result = await round("settle", bodies, atOnce);
    settled.push({
      ...describe(done + bodies.length, result, settled[0]),
      "database KiB per thousand": Math.round((sizeOf(file) - sizeBefore) / 1_024 / (bodies.length / 1_000)),
    });
  }
  report.add(
    `### ${settles.toLocaleString("en")} settles in a row\n\n${atOnce} at a time; a thousand before them, uncounted.\n\n${markdownTable(settled)}`,
  );

  // More than the number of payments whose signers the service remembers.
  const pool = await sign(5_000);
  await round("verify", pool, verifyConnections);
  const verified: Row[] = [];
  const each = Math.ceil(verifies / parts);
  for (let part = 1; part <= parts; part++) {
    const bodies = Array.from({ length: each }, (_, index) => pool[index % pool.length] ?? "");
    const result = await round("verify", bodies, verifyConnections);
    verified.push(describe(part * each, result, verified[0]));
  }
  report.add(
    `### ${verifies.toLocaleString("en")} verifies in a row\n\nOver ${verifyConnections} connections, after the settles.\n\n${markdownTable(verified)}`,
  );
  await service.stop();
  await composition.close();
  rmSync(folder, { recursive: true });
}

type Row = Record<string, string | number>;

function describe(
  upTo: number,
  result: Load & { nodeCpu: number; mib: number },
  first: Row | undefined,
): Row {
  const { good, count, perSecond, p50, p99, cpu, nodeCpu, mib } = result;
  return {
    "up to": upTo.toLocaleString("en"),
    succeeded: `${good} of ${count}`,
    "per second": Math.round(perSecond),
    "of the first": first === undefined ? "1" : (perSecond / Number(first["per second"])).toFixed(2),
    "p50 ms": Math.round(p50),
    "p99 ms": Math.round(p99),
    "service CPU ms each": cpu?.toFixed(3) ?? "unknown",
    "node CPU ms each": nodeCpu.toFixed(3),
    "service MiB": mib,
  };
}

/** The resident memory of a process, from /proc; zero on systems without it. */
function residentMiB(pid: number): number {
  try {
    const kib = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return Math.round(Number(kib ?? 0) / 1_024);
  } catch {
    return 0;
  }
}
