import { requireFree } from "../../local-server/require-free.ts";
import { startChains } from "../stage/chains.ts";
import type { RunningHarness } from "./running-harness.ts";
import type { StartOptions } from "./start-options.ts";

/** When chains with a clock of their own begin: 2026-01-01T00:00:00Z. */
const genesisTime = 1_767_225_600;

/**
 * Starts the chains, puts everything in place on them, and runs the service against them.
 *
 * @throws {KitError} when something cannot be started; nothing is left running then
 */
export async function startHarness(options: StartOptions): Promise<RunningHarness> {
  const { host, port, seed, state } = options;
  await requireFree(host, port);
  let importing: ReturnType<typeof importService> | undefined;
  const chains = await startChains({
    ...options,
    saved: state?.saved?.chains,
    genesisTime: seed === undefined ? undefined : genesisTime,
    meanwhile() {
      importing = importService(options);
      importing.catch(() => {});
    },
  });
  try {
    const [{ serveHarness }, studio] = await (importing ?? importService(options));
    return await serveHarness(chains, options, studio);
  } catch (error) {
    await chains.stop();
    throw error;
  }
}

/** What the service on the chains is made of. Reading it takes as long as the nodes take to come up. */
function importService({ studio = false }: StartOptions) {
  return Promise.all([
    import("./serve-harness.ts"),
    studio ? import("../../studio/serve-studio.ts") : undefined,
  ]);
}
