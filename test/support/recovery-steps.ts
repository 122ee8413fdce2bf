import type { Chain } from "../../src/chain/chain.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";

/** The steps of a recovery, in order. */
export const recoverySteps = [
  "proven, not queued",
  "queued, not signed",
  "signed, not stored",
  "stored, not broadcast",
  "broadcast, not watched",
  "mined, not recorded",
  "recorded, not answered",
] as const;

export type RecoveryStep = (typeof recoverySteps)[number];

/** Wrappers for a service's ledger and chain that call `reached` each time a recovery reaches a step. */
export function watchSteps(reached: (step: RecoveryStep) => void) {
  let stored = false;
  return {
    ledger: (ledger: Ledger): Ledger => ({
      ...ledger,
      recoveries: {
        ...ledger.recoveries,
        async queueRecovery(id, proof) {
          reached("proven, not queued");
          await ledger.recoveries.queueRecovery(id, proof);
          reached("queued, not signed");
        },
        async sendForward(recoverer, id, sign) {
          const sent = await ledger.recoveries.sendForward(recoverer, id, async (txNonce) => {
            const signed = await sign(txNonce);
            reached("signed, not stored");
            return signed;
          });
          stored = true;
          reached("stored, not broadcast");
          return sent;
        },
        async concludeForward(mined, id) {
          reached("mined, not recorded");
          await ledger.recoveries.concludeForward(mined, id);
          reached("recorded, not answered");
        },
      },
    }),
    chain: (chain: Chain): Chain => ({
      ...chain,
      async broadcast(raw, options) {
        await chain.broadcast(raw, options);
        if (stored) reached("broadcast, not watched");
      },
    }),
  };
}
