import { readAmount, readNetwork, readOneOf } from "../../config/values.ts";
import { pay as payOnHarness } from "../../harness/api/pay.ts";
import { settleAnswerSchema } from "../../protocol/answers.ts";
import { type TestPayerName, testPayers } from "../../published/test-payers.ts";
import { defineCommand } from "../kit/command.ts";
import { findHarness, requireRunning, urlOption } from "../kit/running-harness.ts";
import { sampleAmount } from "../up/demo.ts";

const payerNames = Object.keys(testPayers) as TestPayerName[];
const versions = { "1": 1, "2": 2 } as const;

export const payCommand = defineCommand({
  options: {
    network: {
      describe: "where to pay (default base)",
      placeholder: "NAME",
      example: "base",
      read: readNetwork,
      fallback: "base",
    },
    payer: {
      describe: `who pays: ${payerNames.join(", ")} (default funded)`,
      placeholder: "NAME",
      example: "empty",
      read: readOneOf(payerNames),
      fallback: "funded" as TestPayerName,
    },
    amount: {
      describe: `how much, in the asset's smallest unit (default ${sampleAmount}: 0.01 USDC)`,
      placeholder: "UNITS",
      example: "10000",
      read: readAmount,
      fallback: sampleAmount,
    },
    version: {
      describe: "x402 protocol version, 1 or 2 (default 1)",
      placeholder: "N",
      example: "2",
      read: (text) => versions[readOneOf(["1", "2"])(text)],
      fallback: 1 as 1 | 2,
    },
    url: urlOption,
  },

  async run({ network, payer, amount, version, url }, { print }) {
    const harness = await findHarness(url);
    requireRunning(harness, network);
    const order = { network, payer, amount, x402Version: version, validForSeconds: 600 };
    const { verify, settle, tookMs } = await payOnHarness(harness, order);
    print(`verify  ${verify.status}  ${JSON.stringify(verify.body, null, 2)}`);
    print(`settle  ${settle.status}  ${JSON.stringify(settle.body, null, 2)}`);
    const settled = settleAnswerSchema.safeParse(settle.body).data?.success === true;
    print(`\n${settled ? "Settled" : "Not settled"} on ${network} in ${Math.round(tookMs)} ms.`);
    return settled ? 0 : 1;
  },
});
