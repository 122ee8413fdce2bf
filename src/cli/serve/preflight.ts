import { openEndpoints } from "../../deploy/endpoints.ts";
import { KitError } from "../../errors.ts";
import type { Check } from "../../inspection/check.ts";
import { checkNetwork } from "../../inspection/check-network.ts";
import { createLedger } from "../../ledger/create-ledger.ts";
import type { ServeOptions } from "./options.ts";
import { recovererOf } from "./signers.ts";

/**
 * Looks at every network as `doctor` does. Refuses what waiting does not mend: another contract or token than was
 * configured, and transactions of an operator that this database knows nothing of. Everything else is logged: a node
 * that is down, or an operator without gas money, must not keep the other networks from being served.
 *
 * @throws KitError with everything that is to be mended first
 */
export async function refuseUnsafe({ config, signers, database, logger }: ServeOptions): Promise<void> {
  const now = () => Date.now();
  const operators = signers.map(({ address }) => address);
  const recoverer = await recovererOf(config);
  const { nextTxNonce } = createLedger({ db: database, instanceId: crypto.randomUUID(), now });
  const fatal: string[] = [];
  const note = (network: string, { name, status, detail, advice, fatal: isFatal }: Check) => {
    if (isFatal)
      fatal.push(`${network}, ${name}: ${detail}`, ...(advice === undefined ? [] : [`→ ${advice}`]));
    else if (status !== "ok") logger.warn({ network, advice }, `${name}: ${detail}`);
  };
  await Promise.all(
    config.networks.map(async (network) => {
      const rpcs = openEndpoints(network);
      const checks = await checkNetwork({ network, rpcs, operators, recoverer, nextTxNonce, now });
      for (const check of checks) note(network.name, check);
    }),
  );
  if (fatal.length > 0) throw new KitError("It would not be safe to serve with this", { hints: fatal });
}
