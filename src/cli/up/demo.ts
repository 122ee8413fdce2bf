import { KitError } from "../../errors.ts";
import type { HarnessDescription } from "../../harness/control/description.ts";
import { pay } from "../../harness/control/pay.ts";
import { settleAnswerSchema, verifyAnswerSchema } from "../../protocol/answers.ts";
import { type NetworkName, networkNames } from "../../protocol/networks.ts";

/** One sample payment that went through. */
export type SamplePayment = { network: NetworkName; transaction: string; tookMs: number };

/** What a sample payment moves: 0.01 USDC. */
export const sampleAmount = 10_000n;

/**
 * Pays once on every running network, at the same time.
 *
 * @throws KitError when one does not settle: then something is broken.
 */
export function payOnEveryNetwork(harness: HarnessDescription): Promise<SamplePayment[]> {
  const running = networkNames.filter((network) => harness.networks[network] !== undefined);
  return Promise.all(
    running.map(async (network) => {
      const { verify, settle, tookMs } = await pay(harness, {
        network,
        payer: "funded",
        amount: sampleAmount,
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
