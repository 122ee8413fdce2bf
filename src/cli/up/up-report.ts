import { contractVariables, rpcVariableOf } from "../../config/variables.ts";
import { curlOf, type HarnessDescription, networksOf } from "../../harness/control/description.ts";
import { type SamplePayment, sampleAmount, signPayment } from "../../harness/control/pay.ts";
import { builtInNetworks } from "../../protocol/networks.ts";
import { unitsOf } from "../../protocol/token-units.ts";
import { self } from "../../util/self-command.ts";
import { type Column, renderTable } from "../../util/table.ts";
import { atUrl } from "../kit/command.ts";
import { shortenHex } from "../kit/payment-line.ts";
import { curlValidSeconds, describePayers, describePayTo } from "./start-report.ts";

/** What a person reads when `up` is ready. */
export async function describeUp(
  harness: HarnessDescription,
  payments: readonly SamplePayment[] | undefined,
): Promise<string> {
  const { facilitator, organization, organizations = [] } = harness;
  const origin = facilitator.url.replace(/\/v1$/, "");
  return [
    "",
    networkTable(harness, payments),
    "",
    addressTables(harness),
    "",
    ...describeForks(harness),
    ...describePayers(harness.payers),
    "",
    "These keys are published for tests: never send anything of value to them.",
    "",
    "Verify a payment with curl (the same body at /settle settles it, once):",
    "",
    await curl(harness),
    "",
    "From another terminal:",
    "",
    ...commandsFor(harness, origin),
    "",
    // Last, where they are still to be seen.
    `Studio        ${origin}/studio   (every payment, as it happens)`,
    `Facilitator   ${facilitator.url}   (API described at ${origin}/docs)`,
    `API key       ${organization.apiKey}`,
    `Organization  ${organization.id}, paid at ${organization.recipient}`,
    ...describePayTo(harness.payToPolicy).map((text) => `payTo         ${text}`),
    ...organizations.map(({ id, apiKey }) => `Key of ${id.padEnd(6)} ${apiKey}`),
    "",
  ].join("\n");
}

/** Commands to paste, which reach this very harness. */
function commandsFor(harness: HarnessDescription, origin: string): readonly string[] {
  const network = networksOf(harness)[0] ?? "base";
  const url = atUrl(origin);
  return [
    `${self} pay --network ${network}${url}`,
    `${self} fund --network ${network} --to ADDRESS --amount 1000000${url}`,
    `${self} advance-time --network ${network} --seconds 3600${url}`,
    `${self} reset${url}`,
  ];
}

function networkTable(harness: HarnessDescription, payments: readonly SamplePayment[] | undefined): string {
  const columns: Column[] = ["network", { right: "chain id" }, "RPC URL"];
  if (payments !== undefined) columns.push("payment", { right: "took" });
  const rows = networksOf(harness).flatMap((name) => {
    const network = harness.networks[name];
    if (network === undefined) return [];
    const { chainId, rpcUrl } = network;
    const payment = payments?.find((sample) => sample.network === name);
    return [
      [
        name,
        String(chainId),
        rpcUrl,
        payment === undefined ? "" : shortenHex(payment.transaction),
        payment === undefined ? "" : `${Math.round(payment.tookMs)} ms`,
      ],
    ];
  });
  return renderTable(columns, rows);
}

/** Two tables: side by side they would be wider than a terminal. */
function addressTables(harness: HarnessDescription): string {
  const known = networksOf(harness).flatMap((name) => {
    const network = harness.networks[name];
    return network === undefined ? [] : [{ name, network }];
  });
  const contracts = known.map(({ name, network }) => [name, network.facilitatorContract]);
  const assets = known.map(({ name, network }) => [name, network.asset.address]);
  const symbols = new Set(known.map(({ network }) => unitsOf(network.asset).symbol));
  return [
    renderTable(
      [
        "network",
        harness.payToPolicy === undefined ? "payTo: the facilitator contract" : "facilitator contract",
      ],
      contracts,
    ),
    renderTable(
      ["network", isForked(harness) ? "asset" : `asset: ${[...symbols].join("/")} look-alike`],
      assets,
    ),
  ].join("\n\n");
}

const isForked = (harness: HarnessDescription) =>
  Object.values(harness.networks).some(({ fork }) => fork !== undefined);

function describeForks(harness: HarnessDescription): readonly string[] {
  const lines = networksOf(harness).flatMap((name) => {
    const fork = harness.networks[name]?.fork;
    if (fork === undefined) return [];
    const from = fork.from === "recording" ? "a recording of block" : "block";
    const blacklist = fork.hasBlacklist
      ? ""
      : "; its token has no blacklist, so the payer `blacklisted` pays as others do";
    return [`${name} is forked from ${from} ${fork.block}, with its real USDC${blacklist}.`];
  });
  return lines.length === 0 ? [] : [...lines, ""];
}

async function curl(harness: HarnessDescription): Promise<string> {
  const network = networksOf(harness)[0];
  if (network === undefined) return "";
  const { request } = await signPayment(harness, {
    network,
    payer: "funded",
    amount: sampleAmount,
    x402Version: 1,
    validForSeconds: curlValidSeconds,
  });
  return curlOf(harness, "verify", request);
}

/** What a shop and its tests need of a running `up`, as lines of a `.env`. The first network is where is paid. */
export function describeAsEnv(harness: HarnessDescription): string {
  const { facilitator, organization, payers } = harness;
  const running = networksOf(harness).flatMap((name) => {
    const network = harness.networks[name];
    return network === undefined ? [] : [{ name, ...network }];
  });
  const [first] = running;
  const lines: [string, string | undefined][] = [
    ["X402_FACILITATOR_URL", facilitator.url],
    ["X402_API_KEY", organization.apiKey],
    ["X402_NETWORK", first?.caip2],
    ["X402_PAY_TO", first?.payTo],
    ["X402_ASSET", first?.asset.address],
    ["PAYER_PRIVATE_KEY", payers.funded?.privateKey],
    ...running.flatMap(({ name, rpcUrl, facilitatorContract, tier }): [string, string][] => [
      [rpcVariableOf(name), rpcUrl],
      [contractVariables[tier ?? builtInNetworks.named(name)?.tier ?? "mainnet"], facilitatorContract],
    ]),
  ];
  return [...new Map(lines)]
    .flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}`]))
    .join("\n");
}
