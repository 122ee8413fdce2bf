import { availableParallelism } from "node:os";
import type { NetworkName } from "../../protocol/networks.ts";
import { KitError } from "../../util/errors.ts";
import { inParallel } from "../../util/in-parallel.ts";
import { describeEnd, lastLines } from "../scene/run-command.ts";
import { openScene, type Scene } from "../scene/scene.ts";
import { openShops, type Shops } from "./case-shop.ts";
import type { ClientCase } from "./client-cases.ts";
import { type ClientResult, type JudgeClientOptions, runClientCase } from "./run-client-case.ts";

/** Clients mostly wait. With this many at once, a run takes less than 90 s even if every case times out. */
const atOncePerCore = 4;

/**
 * Runs a client once for each case and network, against misbehaving shops, and judges it by its transfers on chain.
 *
 * @param onJudged called with the results of each network, while its chains still run
 * @throws {KitError} when the command cannot be started, or does not buy from a working shop
 */
export async function judgeClient(
  options: JudgeClientOptions,
  onJudged: (results: readonly ClientResult[]) => Promise<void> = async () => {},
): Promise<readonly ClientResult[]> {
  await using shops = await openShops();
  const results: ClientResult[] = [];
  for (const network of options.networks) results.push(...(await judgeOn(network, shops, options, onJudged)));
  return results;
}

async function judgeOn(
  network: NetworkName,
  shops: Shops,
  options: JudgeClientOptions,
  onJudged: (results: readonly ClientResult[]) => Promise<void>,
): Promise<ClientResult[]> {
  const { cases, studio, knownNetworks, networkFile, signal } = options;
  const where = { network, knownNetworks, networkFile, signal };
  await using scene = await openScene({ ...where, hasOtherNetwork: true, studio });
  const run = async (tested: ClientCase) => {
    if (tested.own === undefined) return runClientCase(tested, scene, shops, options);
    await using own: Scene = await openScene({ ...where, ...tested.own });
    // Awaited here, because the scene closes at the end of this block.
    return await runClientCase(tested, own, shops, options);
  };
  const [first, ...others] = cases;
  if (first === undefined) return [];
  // If this case fails, the others say nothing.
  const plain = await run(first);
  requireWorkingClient(plain, options);
  // Must be deployed before payers are funded with it.
  await scene.otherAsset();
  const slowFirst = others.toSorted((a, b) => Number(b.isSlow ?? false) - Number(a.isSlow ?? false));
  const rest = await inParallel(slowFirst, atOncePerCore * availableParallelism(), run);
  const inOrder = rest.toSorted((a, b) => others.indexOf(a.tested) - others.indexOf(b.tested));
  const results = [plain, ...inOrder];
  await onJudged(results);
  return results;
}

/**
 * Requires that a client buys from a working shop.
 *
 * @throws {KitError} says what the client failed to do, with the end of its output
 */
export function requireWorkingClient(result: ClientResult, options: JudgeClientOptions): void {
  const problem = problemOf(result, options);
  if (problem === undefined) return;
  throw new KitError(problem, {
    hints: [
      ...lastLines(result.runs.flatMap(({ stdout, stderr }) => [stdout, stderr])),
      "It must fetch X402_URL, pay with X402_PRIVATE_KEY when asked, print the body or save it in X402_OUTPUT, and exit with 0.",
    ],
  });
}

function problemOf(
  { verdict, runs: [run], exchanges, transfers }: ClientResult,
  { timeoutMs, versions }: JudgeClientOptions,
): string | undefined {
  if (run === undefined) return undefined;
  const { end, served } = run;
  const shown = end === undefined ? "" : describeEnd(end);
  const asked = exchanges.length > 0;
  if (end === undefined && transfers.length <= 1) {
    const what = asked ? "" : ", and never asked the shop";
    return `The command still ran after ${timeoutMs / 1_000} s${what}; it was ended`;
  }
  if (!asked) return `The command ended ${shown} and never asked the shop at X402_URL`;
  if (verdict === "not_paid_not_served") {
    const paid = exchanges.some(({ payment }) => payment !== undefined);
    if (paid) return `The command's payment was refused (${exchanges.at(-1)?.answer}), and it ended ${shown}`;
    const spoken = versions.map((version) => `v${version}`).join(" and ");
    return `The command asked the shop, which speaks ${spoken}, and did not pay; it ended ${shown}`;
  }
  if (verdict === "paid_not_served") {
    return `The command paid, and printed nothing of what it got; it ended ${shown}`;
  }
  if (served && end !== undefined && end.code !== 0) {
    return `The command got what it paid for, and yet ended ${shown}: it must exit with 0`;
  }
  return undefined;
}
