import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/*
 * The long run of what `npm test` tries a few times; see the parts below. Ends with a table of what went wrong. Takes
 * some hours on 2 cores; `npm run test:endurance -- kills mixed` runs only these parts.
 */

/** The test of each part, and how often it repeats unless the environment says otherwise. */
type Part = { counts: Readonly<Record<string, string>> } & (
  | { files: readonly string[] }
  | { contracts: readonly string[] }
);

const parts: Readonly<Record<string, Part>> = {
  // 8 steps on two databases, 63 times: 1,008 deaths.
  kills: { files: ["crash/kill"], counts: { KILL_REPETITIONS: "63" } },
  redrives: { files: ["crash/redrive"], counts: { REDRIVE_REPETITIONS: "20" } },
  recovery: { files: ["recovery/kill"], counts: { RECOVERY_KILL_REPETITIONS: "20" } },
  instances: { files: ["crash/instances"], counts: { INSTANCE_PAYMENTS: "10000" } },
  rolling: { files: ["crash/rolling"], counts: { ROLLING_RESTARTS: "40" } },
  // 25 kinds: 47,000 payments, some 40 minutes.
  operator: {
    files: ["crash/operator"],
    counts: {
      OPERATOR_KINDS: "all",
      OPERATOR_PAYMENTS: "1880",
      OPERATOR_RATE: "40",
      OPERATOR_PROGRAMS: "installed",
      OPERATOR_BLOCK_MS: "1000",
    },
  },
  mixed: { files: ["crash/mixed"], counts: { MIXED_SECONDS: "1200" } },
  faults: { files: ["test/scenarios/faults"], counts: { FAULT_REPETITIONS: "20" } },
  "lost-answers": { files: ["lost-answers"], counts: { LOST_ANSWER_REPETITIONS: "20" } },
  bodies: { files: ["hostile-bodies"], counts: { HOSTILE_BODIES: "1000000" } },
  equal: { files: ["conformance/equal"], counts: { EQUAL_RUNS: "100000" } },
  differential: { files: ["conformance/differential"], counts: { DIFFERENTIAL_PAYMENTS: "5000" } },
  // The invariants of the contract, each with 130,000 calls.
  contracts: {
    contracts: ["--match-path", "contracts/test/invariants/*"],
    counts: { FOUNDRY_INVARIANT_RUNS: "2048" },
  },
};

/** `handedOverAgain`: successes returned again after a kill, which is not wrong (docs/decisions/0016-delivery.md). */
type Row = { lost: number; paidTwice: number; handedOverAgain: number; wrongAnswers: number };

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => parts[name] === undefined);
if (unknown.length > 0) {
  console.error(`There is no part ${unknown.join(", ")}; there are ${Object.keys(parts).join(", ")}`);
  process.exit(1);
}
const chosen = Object.entries(parts).filter(([name]) => asked.length === 0 || asked.includes(name));
const directory = mkdtempSync(join(tmpdir(), "x402-endurance-"));
const report = join(directory, "report");
writeFileSync(report, "");
const failed: string[] = [];
let interrupted = false;
// One at a time, because each takes the whole machine.
for (const [name, part] of chosen) {
  const [command, args]: [string, readonly string[]] =
    "contracts" in part
      ? [process.execPath, [join(import.meta.dirname, "test-contracts.ts"), ...part.contracts]]
      : ["vitest", ["run", "--project", "processes", "--project", "release", ...part.files]];
  const running = spawn(command, args, {
    stdio: "inherit",
    env: { ...part.counts, ...process.env, ENDURANCE_REPORT: report },
  });
  // If a signal is sent to this process only, everything that the tests started would keep running.
  const end = () => {
    interrupted = true;
    running.kill("SIGTERM");
  };
  process.once("SIGINT", end).once("SIGTERM", end);
  const [status] = await once(running, "close");
  process.off("SIGINT", end).off("SIGTERM", end);
  if (status !== 0) failed.push(name);
  if (interrupted) break;
}
const rows = new Map<string, Row & { repetitions: number }>();
for (const line of readFileSync(report, "utf8").split("\n").slice(0, -1)) {
  const { kind, lost, paidTwice, handedOverAgain, wrongAnswers }: Row & { kind: string } = JSON.parse(line);
  const none: Row = { lost: 0, paidTwice: 0, handedOverAgain: 0, wrongAnswers: 0 };
  const row = rows.get(kind) ?? { repetitions: 0, ...none };
  row.repetitions++;
  row.lost += lost;
  row.paidTwice += paidTwice;
  row.handedOverAgain += handedOverAgain;
  row.wrongAnswers += wrongAnswers;
  rows.set(kind, row);
}
rmSync(directory, { recursive: true });
console.table(Object.fromEntries([...rows].sort(([a], [b]) => a.localeCompare(b))));
console.log(failed.length === 0 ? "Every part passed." : `Failed: ${failed.join(", ")}`);
process.exitCode = failed.length === 0 ? 0 : 1;
