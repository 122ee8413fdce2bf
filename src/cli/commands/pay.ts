import { readAmount, readNetwork, readOneOf } from "../../config/values.ts";
import { findHarness, requireRunning } from "../../harness/control/find-harness.ts";
import { pay as payOnHarness } from "../../harness/control/pay.ts";
import { sampleAmount } from "../../harness/control/sample-payments.ts";
import { settleAnswerSchema } from "../../protocol/answers.ts";
import { type TestPayerName, testPayers } from "../../published/test-payers.ts";
import { defineCommand, networkFileOption, urlOption, valueOption } from "../kit/command.ts";

const payerNames = Object.keys(testPayers) as TestPayerName[];
const versions = { "1": 1, "2": 2 } as const;

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
    const harness = await findHarness(url);
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
