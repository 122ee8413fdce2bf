import { InvalidValue } from "../../config/values.ts";
import { scenarioNamed } from "../../fixtures/cases/scenario-named.ts";
import { findScenario, type RowName, type ScenarioName, scenarios } from "../../fixtures/cases/scenarios.ts";
import { signPayment } from "../../fixtures/engine/sign-payment.ts";
import { type MockServer, startObservedMock } from "../../fixtures/mock-server/start-mock-server.ts";
import { curlOf, originOf } from "../../harness/control/description.ts";
import { renderRows, renderTable } from "../../util/text.ts";
import { contractsOf, defineCommand, flag, localOptions, option } from "../kit/command.ts";
import { createLineRenderer, type PaymentLine } from "../kit/payment-line.ts";
import { followPayments } from "../up/follow.ts";
import { curlValidSeconds, describePayers, describePayTo } from "../up/up-report.ts";

const everyAddress = ["0.0.0.0", "::"];

export const mock = defineCommand({
  options: {
    ...localOptions,
    scenario: option(
      "NAMES",
      "how all requests end; several, separated by commas, for verify, settle and both versions",
      { read: readScenarios, example: "settle.insufficient_funds" },
    ),
    clock: option("TIME", "a fixed time, which only /__advance-time changes (default: the machine's clock)", {
      read: readTime,
      example: "2026-01-01T00:00:00Z",
    }),
    quiet: flag("print no line for each verify and settle"),
    json: flag("print one line of JSON when ready, and nothing else"),
  },

  async run(values, { print, printError, networks: known, takeSignals }) {
    const interrupted = takeSignals();
    const { networks, host, port, scenario: usual = [], clock, json } = values;
    const { mainnet, testnet } = contractsOf(values);
    const observed = await startObservedMock({
      host,
      allowHosts: values["allow-host"],
      port,
      networks,
      addedNetworks: known.all,
      contracts: { ...(mainnet && { mainnet }), ...(testnet && { testnet }) },
      payTo: values["pay-to"] ?? "contract",
      reasons: values.reasons ?? "spec",
      scenarios: usual,
      ...(clock !== undefined && { clock }),
      corsOrigins: values["cors-origins"],
      discovery: values.discovery,
    });
    await using server = observed.server;
    if (everyAddress.includes(host)) {
      printError(
        "This listens on every address of the machine: everyone who reaches it can decide how requests end.",
      );
    }
    if (json) {
      print(JSON.stringify(server.description));
    } else {
      print(await describeRunningMock(server, usual));
      print(`Ready in ${(performance.now() / 1000).toFixed(2)} s. Ctrl-C stops it.`);
      if (!values.quiet) {
        const render = createLineRenderer();
        const write = (line: PaymentLine) => print(render(line));
        followPayments(observed.timeline, observed.context, write, originOf(server.description));
      }
    }
    const { promise: stopped, resolve } = Promise.withResolvers<void>();
    if (interrupted.aborted) resolve();
    interrupted.addEventListener("abort", () => resolve());
    await stopped;
    return 0;
  },
});

/** Reads scenario names; each must exist before anything starts. */
function readScenarios(text: string): readonly ScenarioName[] {
  return text.split(",").map((name) => {
    try {
      return scenarioNamed(name.trim());
    } catch (error) {
      if (error instanceof RangeError) throw new InvalidValue(error.message);
      throw error;
    }
  });
}

function readTime(text: string): Date {
  const time = new Date(text);
  if (!/^\d{4}-\d\d-\d\dT.*(Z|[+-]\d\d:\d\d)$/.test(text) || Number.isNaN(time.getTime())) {
    throw new InvalidValue("is not a time of ISO 8601 with its offset");
  }
  return time;
}

/** Suggested scenarios to begin with: the outcomes that clients most often handle wrongly. */
const suggested: readonly RowName[] = [
  "settle.insufficient_funds",
  "settle.invalid_transaction_state.used_before",
  "settle.v2.pending",
  "settle.unavailable.rpc_down",
  "settle.too_many_requests",
  "settle.connection.answer_lost",
  "settle.connection.cut_off",
  "verify.insufficient_funds",
  "verify.slow.late_verify",
];

/** The text printed when `mock` is ready. */
async function describeRunningMock(server: MockServer, usual: readonly ScenarioName[]): Promise<string> {
  const { environment } = server;
  const { facilitator, organization, payers, control } = server.description;
  return [
    "",
    networkTables(server),
    "",
    ...describePayers(payers),
    "",
    "There are no chains: nothing is paid. These keys are published for tests.",
    "",
    "Verify a payment with curl (the same body at /settle settles it, once):",
    "",
    await paymentCurl(server),
    "",
    "Have the next settle end otherwise:",
    "",
    `curl -s ${control.scenario} -d '{"name":"settle.insufficient_funds"}'`,
    "",
    renderRows(suggested.map((name) => [name, findScenario(name).means])),
    "",
    `All ${scenarios.length} scenarios  ${control.scenarios}`,
    `Calls             ${control.calls}`,
    `Studio            ${originOf(server.description)}/studio`,
    `Mock facilitator  ${facilitator.url}`,
    `API key           ${organization.apiKey}`,
    `Organization      ${organization.id}, paid at ${organization.recipient}`,
    ...describePayTo(environment.network.payTo).map((text) => `payTo             ${text}`),
    ...usual.map((name, index) => `${index === 0 ? "Requests end in" : ""}`.padEnd(18) + name),
    "",
  ].join("\n");
}

function networkTables({ environment }: MockServer): string {
  const { networks } = environment;
  const [{ payTo = "contract" }] = networks;
  const isContractAlone = payTo === "contract";
  return [
    renderTable(
      [
        "network",
        { right: "chain id" },
        isContractAlone ? "payTo: the facilitator contract" : "facilitator contract",
      ],
      networks.map(({ name, chainId, facilitatorContract }) => [name, String(chainId), facilitatorContract]),
    ),
    renderTable(
      ["network", "asset: USDC"],
      networks.map(({ name, assets: [{ address }] }) => [name, address]),
    ),
  ].join("\n\n");
}

async function paymentCurl({ environment, description }: MockServer): Promise<string> {
  const payment = await signPayment(environment, { validForSeconds: curlValidSeconds });
  return curlOf(description, "verify", payment);
}
