import { readAmount, readNetwork, readOneOf } from "../../config/values.ts";
import { KitError } from "../../errors.ts";
import { type HarnessDescription, networksOf } from "../../harness/control/description.ts";
import { findHarness, requireRunning } from "../../harness/control/find-harness.ts";
import { pay as payOnHarness } from "../../harness/control/pay.ts";
import { settleAnswerSchema, verifyAnswerSchema } from "../../protocol/answers.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import { type TestPayerName, testPayers } from "../../published/test-payers.ts";
import { defineCommand, networkFileOption, urlOption, valueOption } from "../kit/command.ts";
import { self } from "../kit/terminal.ts";

const payerNames = Object.keys(testPayers) as TestPayerName[];
const versions = { "1": 1, "2": 2 } as const;

/** What a sample payment moves: 0.01 USDC. */
export const sampleAmount = 10_000n;

export const pay = defineCommand({
  options: {
    network: { ...valueOption("where to pay", "NAME", "base", readNetwork), default: "base" },
    payer: {
      ...valueOption(`who pays: ${payerNames.join(", ")}`, "NAME", "empty", readOneOf(payerNames)),
      default: "funded",
    },
    amount: {
      ...valueOption(
        "how much, in the asset's smallest unit (1 USDC is 1000000)",
        "UNITS",
        "10000",
        readAmount,
      ),
      default: `${sampleAmount}`,
    },
    version: {
      ...valueOption(
        "x402 protocol version, 1 or 2",
        "N",
        "2",
        (text) => versions[readOneOf(["1", "2"])(text)],
      ),
      default: "1",
    },
    ...networkFileOption,
    url: urlOption,
  },

  async run({ network, payer, amount, version, url }, { print }) {
    const harness = await findHarness(url, self);
    requireRunning(harness, network);
    const payment = { network, payer, amount, x402Version: version, validForSeconds: 600 };
    const { verify, settle, tookMs } = await payOnHarness(harness, payment);
    print(`verify  ${verify.status}  ${JSON.stringify(verify.body, null, 2)}`);
    print(`settle  ${settle.status}  ${JSON.stringify(settle.body, null, 2)}`);
    const settled = settleAnswerSchema.safeParse(settle.body).data?.success === true;
    print(`\n${settled ? "Settled" : "Not settled"} on ${network} in ${Math.round(tookMs)} ms.`);
    return settled ? 0 : 1;
  },
});

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
      const { verify, settle, tookMs } = await payOnHarness(harness, {
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
