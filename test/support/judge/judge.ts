import { join } from "node:path";
import { z } from "zod";
import { childEnvironment } from "../child-environment.ts";
import { programFile } from "../programs.ts";
import { runHere } from "../run-here.ts";

const report = z.object({
  findings: z.array(
    z.object({
      name: z.string(),
      verdict: z.string(),
      level: z.string(),
      transfers: z.array(z.object({ amount: z.string() })),
      services: z.number(),
      exchanges: z.array(z.string()),
      notes: z.array(z.string()),
    }),
  ),
});

/** The command line of a test client or shop with this behavior. */
export function subject(kind: "buyer" | "shop" | "public-shop", manner: string): string[] {
  return [process.execPath, programFile(`test/support/judge/${kind}.ts`), manner];
}

/** Like `subject`, for a client or shop with channels. Not a bundled program: its bundle would contain all of viem. */
export function channelSubject(kind: "buyer" | "shop", manner: string): string[] {
  return [process.execPath, join(import.meta.dirname, `channel-${kind}.ts`), manner];
}

/** Judges a command; returns the exit code and the verdict of each case. */
export async function judge(kind: "client" | "shop", command: readonly string[], ...options: string[]) {
  const { code, stdout, stderr } = await runHere(
    ["judge", kind, "--json", ...options, "--", ...command],
    childEnvironment(),
  );
  if (stderr !== "") throw new Error(stderr);
  const { findings } = report.parse(JSON.parse(stdout));
  const verdicts = Object.fromEntries(findings.map(({ name, verdict }) => [name, verdict]));
  const bad = Object.fromEntries(
    findings
      .filter(({ level }) => level === "wrong" || level === "differs")
      .map(({ name, verdict }) => [name, verdict]),
  );
  return { code, findings, verdicts, bad };
}
