import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { X402Version } from "../../protocol/requests.ts";
import { KitError } from "../../util/errors.ts";
import type { CasePayer, Offer } from "../scene/offers.ts";
import type { JudgeOptions, PurchaseFacts } from "../scene/purchases.ts";
import {
  type CommandEnd,
  describeEnd,
  endWithin,
  lastLines,
  type RunningCommand,
} from "../scene/run-command.ts";

/* Runs the processes of a judged client, and explains why a command does not buy. */

/** Options for running a client's processes. */
export type RunClientOptions = Pick<JudgeOptions, "header" | "timeoutMs" | "signal"> & {
  /** Starts the client with these environment variables. */
  start(env: Readonly<Record<string, string>>): Promise<RunningCommand>;
};

/** The result of one process of the client. */
export type ClientRun = {
  /** Undefined if it was killed. */
  end: CommandEnd | undefined;
  /** True if it printed or saved the goods. */
  served: boolean;
  /** Everything it printed and saved. */
  output: string;
  stdout: string;
  stderr: string;
};

/** The purchase that the client must make, and its means of payment. */
type Errand = Pick<Offer, "network" | "asset"> & {
  resource: string;
  payer: CasePayer;
  goods: string;
  /** The limit for all of its payments, in the asset's smallest unit. */
  most: bigint;
  /** Additional environment variables. */
  more?: Readonly<Record<string, string>>;
};

/** Runs one process of a client. */
export async function runClient(
  { resource, payer, goods, network, asset, most, more }: Errand,
  { start, header, timeoutMs, signal }: RunClientOptions,
): Promise<ClientRun> {
  const folder = await mkdtemp(join(tmpdir(), "x402-kit-judge-"));
  const file = join(folder, "output");
  try {
    await using running = await start({
      X402_URL: resource,
      X402_PRIVATE_KEY: payer.privateKey,
      X402_NETWORK: network.name,
      X402_CAIP2: network.caip2,
      X402_ASSET: asset.address,
      X402_MAX_AMOUNT: `${most}`,
      X402_OUTPUT: file,
      ...more,
      ...(header !== undefined && { X402_HEADER: `${header.name}: ${header.value}` }),
    });
    const end = await endWithin(running, timeoutMs, signal);
    if (end !== undefined) await running.outputEnded;
    const saved = await readFile(file, "utf8").catch(() => "");
    const stdout = running.stdout();
    const output = `${stdout}\n${saved}`;
    return { end, served: output.includes(goods), output, stdout, stderr: running.stderr() };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The facts that show if a client works at all. */
type RunFacts = Pick<PurchaseFacts, "exchanges" | "transfers"> & {
  /** The client's processes. */
  runs: readonly ClientRun[];
  /** The number of distinct payments received, whatever their outcome. */
  payments: number;
};

type ToldOptions = { timeoutMs: number; versions: readonly X402Version[] };

/**
 * Requires that a client buys from a working shop.
 *
 * @throws {KitError} if it does not; says what the client failed to do, with the end of its output
 */
export function requireWorkingClient(
  { verdict, facts }: { verdict: string; facts: RunFacts | undefined },
  options: ToldOptions,
): void {
  const problem = facts && problemOf(verdict, facts, options);
  if (facts === undefined || problem === undefined) return;
  throw new KitError(problem, {
    hints: [
      ...lastLines(facts.runs.flatMap(({ stdout, stderr }) => [stdout, stderr])),
      "It must fetch X402_URL, pay with X402_PRIVATE_KEY when asked, print the body or save it in X402_OUTPUT, and exit with 0.",
    ],
  });
}

function problemOf(
  verdict: string,
  { runs: [run], exchanges, payments, transfers }: RunFacts,
  { timeoutMs, versions }: ToldOptions,
): string | undefined {
  if (run === undefined) return undefined;
  const { end, served } = run;
  const shown = end === undefined ? "" : describeEnd(end);
  const asked = exchanges.length > 0;
  if (end === undefined && transfers.length <= 1) {
    const what = asked ? "" : ", and made no request to the shop";
    return `The command still ran after ${timeoutMs / 1_000} s${what}; it was ended`;
  }
  if (!asked) return `The command ended ${shown} and never requested X402_URL`;
  if (verdict === "not_paid_not_served") {
    const answer = exchanges.at(-1)?.split(" → ").at(-1);
    if (payments > 0) return `The command's payment was refused (${answer}), and it ended ${shown}`;
    const spoken = versions.map((version) => `v${version}`).join(" and ");
    return `The command requested X402_URL, which speaks ${spoken}, and did not pay; it ended ${shown}`;
  }
  if (verdict === "paid_not_served") {
    return `The command paid, and printed nothing of what it got; it ended ${shown}`;
  }
  if (served && end !== undefined && end.code !== 0) {
    return `The command got what it paid for, and yet ended ${shown}: it must exit with 0`;
  }
  return undefined;
}

/** Notes for an exit code that contradicts the facts, or a client that was killed. */
export function notesOf({ end, served }: ClientRun): string[] {
  if (end === undefined) return ["it was ended when its time was over"];
  if (served && end.code !== 0) return [`it got the goods, and exited with ${end.code ?? end.signal}`];
  if (!served && end.code === 0) return ["it got nothing, and exited with 0"];
  return [];
}
