import { settleAnswerSchema, verifyAnswerSchema } from "../../protocol/answers.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import { KitError } from "../../util/errors.ts";
import { type HarnessDescription, networksOf, type RunningNetwork } from "./description.ts";
import { requireRunning } from "./find-harness.ts";
import { pay } from "./pay.ts";

/** A hundredth of a token. */
function hundredthOf({ decimals }: RunningNetwork["asset"]): bigint {
  return 10n ** BigInt(Math.max(decimals - 2, 0));
}

/** One sample payment that went through. */
export type SamplePayment = { network: NetworkName; transaction: string; tookMs: number };

/**
 * Pays once on every running network, at the same time.
 *
 * @throws KitError when one does not settle: then something is broken.
 */
export function payOnEveryNetwork(harness: HarnessDescription): Promise<SamplePayment[]> {
  const running = networksOf(harness);
  return Promise.all(
    running.map(async (network) => {
      const { verify, settle, tookMs } = await pay(harness, {
        network,
        payer: "funded",
        amount: hundredthOf(requireRunning(harness, network).asset),
        x402Version: 1,
        validForSeconds: 600,
      });
      const verdict = verifyAnswerSchema.safeParse(verify.body);
      const outcome = settleAnswerSchema.safeParse(settle.body);
      if (verdict.data?.isValid !== true || outcome.data?.success !== true) {
        throw new KitError(`The sample payment on ${network} did not go through`, {
          hints: [`verify: ${JSON.stringify(verify.body)}`, `settle: ${JSON.stringify(settle.body)}`],
        });
      }
      return { network, transaction: outcome.data.transaction, tookMs };
    }),
  );
}
