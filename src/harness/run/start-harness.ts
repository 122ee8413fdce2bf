import { requireFree } from "../../service/http/local-server.ts";
import { startChains } from "../setup/chains.ts";
import type { RunningHarness, StartOptions } from "./running-harness.ts";

/** The start time of chains with their own clock: 2026-01-01T00:00:00Z. */
const genesisTime = 1_767_225_600;

/**
 * Starts the chains, sets them up, and runs the service against them.
 *
 * @throws {KitError} if something cannot be started; nothing is left running then
 */
export async function startHarness(options: StartOptions): Promise<RunningHarness> {
  const { host, port, seed, state, shop } = options;
  await requireFree(host, port);
  if (shop !== undefined) await requireFree("127.0.0.1", shop.port);
  let preparing: ReturnType<typeof prepareService> | undefined;
  const chains = await startChains({
    ...options,
    saved: state?.saved?.chains,
    genesisTime: seed === undefined ? undefined : genesisTime,
    meanwhile() {
      preparing = prepareService(options);
      preparing.catch(() => {});
    },
  });
  try {
    const { serveHarness, ...prepared } = await (preparing ?? prepareService(options));
    return await serveHarness(chains, options, prepared);
  } catch (error) {
    await chains.stop();
    throw error;
  }
}

/** Prepares the parts of the service that need no chains; called while the nodes start. */
async function prepareService(options: StartOptions) {
  const [{ serveHarness }, { prepareDatabases }, studio] = await Promise.all([
    import("./serve-harness.ts"),
    import("./harness-core.ts"),
    options.studio ? import("../../observe/studio/serve-studio.ts") : undefined,
  ]);
  return { serveHarness, studio, openDatabase: prepareDatabases(options) };
}
