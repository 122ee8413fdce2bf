import type { Service } from "../../service.ts";
import type { ServeOptions } from "./options.ts";

/** Logs a line for each network: with what it is served, or why it is not yet. */
export async function announceNetworks(
  { checkHealth }: Service,
  { config, signers, logger }: ServeOptions,
): Promise<void> {
  const networks = await checkHealth();
  for (const { name, chainId, facilitatorContract, rpcUrls, assets, confirmations } of config.networks) {
    const readiness = networks[name];
    const details = {
      network: name,
      chainId,
      facilitatorContract,
      operators: signers.map(({ address }) => address),
      assets: assets.map(({ address }) => address),
      rpcEndpoints: rpcUrls.length,
      confirmations,
    };
    if (readiness?.ready === true) logger.info(details, "network ready");
    else logger.warn({ ...details, detail: readiness?.detail }, "network not ready yet; trying again");
  }
}
