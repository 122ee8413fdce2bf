import { readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";

const page = new URL("../../docs/benchmarks.md", import.meta.url);

/** The output of a run: its machine, then one heading and table at a time. `--write` also puts it into docs/benchmarks.md. */
export type Report = { add(text: string): void; end(): void };

/** @param part the part of docs/benchmarks.md, between two comments that name it */
export function createReport(part: "peers" | "growth"): Report {
  const texts: string[] = [];
  const report: Report = {
    add(text) {
      console.log(`${text}\n`);
      texts.push(text);
    },
    end() {
      if (!process.argv.includes("--write")) return;
      const between = new RegExp(`(?<=<!-- ${part} -->\\n).*(?=<!-- end of ${part} -->)`, "s");
      writeFileSync(
        page,
        readFileSync(page, "utf8").replace(between, () => `\n${texts.join("\n\n")}\n\n`),
      );
    },
  };
  report.add(describeMachine());
  return report;
}

/** The sizes on the command line. */
export function sizesGiven(): number[] {
  return process.argv
    .slice(2)
    .filter((word) => word !== "--write")
    .map(Number);
}

/** A table as in docs/benchmarks.md; the headings are the keys of the first row. */
export function markdownTable(rows: readonly Readonly<Record<string, string | number>>[]): string {
  const headings = Object.keys(rows[0] ?? {});
  const line = (cells: readonly (string | number)[]) => `| ${cells.join(" | ")} |`;
  return [
    line(headings),
    line(headings.map((_, index) => (index === 0 ? "---" : "---:"))),
    ...rows.map((row) => line(headings.map((heading) => row[heading] ?? ""))),
  ].join("\n");
}

/** Formats milliseconds with a meaningful number of digits. */
export function ms(value: number): string {
  return value.toFixed(value < 1 ? 2 : value < 20 ? 1 : 0);
}

/** Describes the machine of a run, for the line above its tables. */
export function describeMachine(): string {
  const [cpu, ...others] = cpus();
  const [load = 0] = loadavg();
  return `${new Date().toISOString().slice(0, 10)}, ${others.length + 1} cores (${cpu?.model.trim()}), Node ${process.version}, load ${load.toFixed(1)} before the run.`;
}
