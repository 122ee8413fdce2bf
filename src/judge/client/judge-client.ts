import { availableParallelism } from "node:os";
import type { NetworkName } from "../../protocol/networks.ts";
import { inParallel } from "../../util/in-parallel.ts";
import { openScene, type Scene } from "../scene/scene.ts";
import type { ClientCase } from "./client-case.ts";
import type { JudgeClientOptions } from "./client-options.ts";
import { type ClientResult, runClientCase } from "./run-client-case.ts";
import { openShops, type Shops } from "./shops.ts";
import { requireWorkingClient } from "./working-client.ts";

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
