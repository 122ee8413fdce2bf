import {
  InvalidValue,
  readFacilitatorUrl,
  readHttpUrl,
  readNetwork,
  readOneOf,
  readWholeNumber,
} from "../../config/values.ts";
import { createVariableReader } from "../../config/variable-reader.ts";
import { variables } from "../../config/variables.ts";
import { scenarios } from "../../fixtures/cases/scenarios.ts";
import {
  createProgress,
  reportConformance,
  reportNoFacilitator,
} from "../../judge/conformance/conformance-report.ts";
import { type FoundFacilitator, findFacilitator } from "../../judge/conformance/find-facilitator.ts";
import { runConformance } from "../../judge/conformance/run-conformance.ts";
import { authKinds } from "../../judge/conformance/send-request.ts";
import { runStrangersRefund, strangersRefund } from "../../judge/conformance/strangers-refund.ts";
import { judgeExitCodesText, judgeFailureCodes } from "../../judge/frame/report.ts";
import { testKeys } from "../../payer/test-keys.ts";
import { ConfigurationError, KitError } from "../../util/errors.ts";
import {
  addressOption,
  casesOption,
  chooseCases,
  defineCommand,
  networkFileOption,
  option,
  variableOption,
} from "../kit/command.ts";
import { failureOf } from "../kit/failure.ts";
import { reportOptions, requireReportFiles, writeReport } from "../kit/report.ts";

const url = variables.X402_KIT_URL.default;

export const conformance = defineCommand({
  options: {
    url: option("URL", "where the facilitator is: by default, that of a running `up`", {
      read: readFacilitatorUrl,
      default: url,
    }),
    "api-key": variableOption("X402_API_KEY", { placeholder: "KEY", example: testKeys.local.apiKey }),
    ...networkFileOption,
    network: option("NAME", "where to pay (default: the first that the facilitator lists)", {
      read: readNetwork,
      example: "base-sepolia",
    }),
    auth: option(
      "KIND",
      `how the API key is sent: ${authKinds.join(", ")} (default: bare where there is one, else none)`,
      { read: readOneOf(authKinds), example: "bearer" },
    ),
    "auth-header": option("NAME", "the header that the API key is sent in", {
      read: readHeaderName,
      example: "X-API-Key",
      default: "Authorization",
    }),
    "pay-to": addressOption(
      "payTo of the payments, as the facilitator expects it: your wallet, or its contract (known for `up`)",
    ),
    "rpc-url": option(
      "URL",
      "an RPC endpoint of the network: transfers on the chain are then judged too (known for `up`)",
      { read: readHttpUrl, example: "https://sepolia.base.org" },
    ),
    timeout: option("SECONDS", "how long an answer may take, in seconds", {
      read: readWholeNumber(1, 600),
      example: "30",
      default: "100",
    }),
    parallel: option("NUMBER", "how many scenarios run at a time", {
      read: readWholeNumber(1, 64),
      example: "8",
      default: "1",
    }),
    cases: casesOption([...scenarios, strangersRefund], {
      describe: "only scenarios whose names contain one of these, such as settle.v2 or insufficient_funds",
      example: "settle.v2",
      kind: "scenario",
    }),
    ...reportOptions,
  },
  variables: ["PAYER_PRIVATE_KEY"],
  environment(env) {
    const reader = createVariableReader(env);
    const payerKey = reader.read("PAYER_PRIVATE_KEY");
    if (reader.problems().length > 0) throw new ConfigurationError(reader.problems());
    return { payerKey };
  },

  exitCodes: judgeExitCodesText,
  failureCodes: judgeFailureCodes,

  async run(values, { print, printError, networks: knownNetworks }, { payerKey }) {
    const { url, network, cases, auth, parallel, timeout } = values;
    requireReportFiles(values);
    const apiKey = values["api-key"];
    const chosen = chooseCases(scenarios, cases);
    const [ofChannels] = chooseCases([strangersRefund], cases);
    let facilitator: FoundFacilitator;
    try {
      facilitator = await findFacilitator({
        baseUrl: url,
        apiKey,
        network,
        knownNetworks,
        payerKey,
        auth,
        rpcUrl: values["rpc-url"],
        authHeader: values["auth-header"],
        payTo: values["pay-to"],
      });
    } catch (error) {
      if (!(error instanceof KitError)) throw error;
      const failure = failureOf(error, "conformance", undefined);
      await writeReport(reportNoFacilitator(url, error.message), values, print, failure);
      throw error;
    }
    const onFinding = createProgress(chosen.length, printError);
    const timeoutMs = 1_000 * timeout;
    const run = await runConformance(facilitator, chosen, { parallel, timeoutMs, onFinding });
    const more =
      ofChannels === undefined || run.problem !== undefined
        ? []
        : [await runStrangersRefund(facilitator, timeoutMs)];
    const all = { ...run, findings: [...run.findings, ...more] };
    return writeReport(reportConformance(facilitator, all, { parallel }), values, print);
  },
});

function readHeaderName(text: string): string {
  if (!/^[\w!#$%&'*+.^`|~-]{1,100}$/.test(text)) throw new InvalidValue("is not the name of a header");
  return text;
}
