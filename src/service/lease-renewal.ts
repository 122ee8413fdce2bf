import { setTimeout as sleep } from "node:timers/promises";
import type { Leases } from "../ledger/ledger.ts";
import type { ServiceLog } from "../observe/log/logger.ts";

/** The pause before a renewal that failed is tried again, in milliseconds. */
const renewAgainMs = 200;

/**
 * Renews the leases of this instance from now on, six times in the life of one, and writes again what could not be written.
 *
 * @returns ends it, when what is being renewed is
 */
export function renewLeasesRegularly(
  leases: Pick<Leases, "renewLeases" | "retryWrites">,
  { leaseMs, log }: { leaseMs: number; log: ServiceLog },
): () => Promise<void> {
  let renewing: Promise<void> | undefined;
  let ended = false;

  /** Tried again at once where it fails, which may have taken half a lease: other instances take what is not renewed. */
  async function renew(): Promise<void> {
    for (;;) {
      try {
        return await leases.renewLeases();
      } catch (error) {
        log.error({ err: error }, "leases could not be renewed");
      }
      if (ended) return;
      await sleep(renewAgainMs);
    }
  }

  const renewal = setInterval(() => {
    // One that takes long, since the database does, is not made to take longer by the next.
    renewing ??= renew().finally(() => {
      renewing = undefined;
    });
    // Beside it: where this takes longer than a lease, another instance would give the successes that are to be recorded.
    void leases.retryWrites();
  }, leaseMs / 6);
  renewal.unref();

  return async () => {
    clearInterval(renewal);
    ended = true;
    await renewing;
  };
}
