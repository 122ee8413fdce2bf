import { contractVariables, rpcVariableOf, variables } from "../../config/variables.ts";
import { type HarnessDescription, networksOf, originOf } from "../../harness/control/description.ts";
import type { SamplePayment } from "../../harness/control/pay.ts";
import { renderVariables, shopVariables } from "../../payer/shop-variables.ts";
import { type TestPayer, testPayers } from "../../payer/test-payers.ts";
import { builtInNetworks } from "../../protocol/networks.ts";
import type { PayToPolicy } from "../../protocol/signed-payment.ts";
import { self } from "../../util/self-command.ts";
import { type Column, renderTable } from "../../util/text.ts";
import { atUrl } from "../kit/command.ts";
import { shortenHex } from "../kit/payment-line.ts";
import { paint } from "../kit/terminal.ts";

/** The text printed when `up` is ready: at most 30 lines, without the payers' keys. */
export function describeUp(
  harness: HarnessDescription,
  payments: readonly SamplePayment[] | undefined,
): string {
  const { facilitator, organization, organizations = [], payToPolicy } = harness;
  const origin = originOf(harness);
  const url = atUrl(origin);
  const network = networksOf(harness)[0] ?? "base";
  const row = (name: string, value: string) => `${paint.soft(name.padEnd(13))} ${value}`;
  return [
    "",
    networkTable(harness, payments),
    "",
    ...describeForks(harness),
    row("Facilitator", `${paint.strong(facilitator.url)}   (API at ${origin}/docs)`),
    row("API key", organization.apiKey),
    ...organizations.map(({ id, apiKey }) => row(`Key of ${id}`, apiKey)),
    ...payToRows(harness).map(([payTo, names], index) =>
      row(index === 0 ? "payTo" : "", `${payTo}   ${names}`),
    ),
    ...describePayTo(payToPolicy).map((text) => row("payTo may be", text)),
    row("paid at", `${organization.recipient}   (${organization.id})`),
    ...(harness.shop === undefined
      ? []
      : [row("Shop", `${paint.strong(harness.shop.url)}   (recorded; passed on to ${harness.shop.target})`)]),
    row("Studio", `${paint.strong(`${origin}/studio`)}   (every payment, as it happens)`),
    row("MCP", `${origin}/mcp   (the same for coding agents)`),
    "",
    `curl -s ${facilitator.url}/supported`,
    `${self} pay --network ${network} --payer empty${url}`,
    `${self} why${url}`,
    "",
    `Test payers and their keys: ${self} payers`,
    `A .env of all this, with the tokens' addresses: ${self} up --env${atAddress(origin)}`,
    `All commands: ${self} --help`,
    "",
  ].join("\n");
}

/** The options that make `up --env` find this `up`; empty for the default address. */
function atAddress(origin: string): string {
  const { hostname, port } = new URL(origin);
  const host = hostname.replace(/^\[|\]$/g, "");
  return [
    port === variables.PORT.default ? "" : ` --port ${port === "" ? 80 : port}`,
    host === variables.HOST.default ? "" : ` --host ${host}`,
  ].join("");
}

/** The addresses to use as payTo, each with its networks. */
function payToRows({ networks }: HarnessDescription): [payTo: string, names: string][] {
  const byAddress = Map.groupBy(Object.entries(networks), ([, network]) => network?.payTo);
  return [...byAddress].flatMap(([payTo, all]) =>
    payTo === undefined ? [] : [[payTo, all.map(([name]) => name).join(", ")] as [string, string]],
  );
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

/** The settings of a running `up` for a shop and its tests, as `.env` lines. Payments use the first network. */
export function describeAsEnv(harness: HarnessDescription): string {
  const { facilitator, organization, payers } = harness;
  const running = networksOf(harness).flatMap((name) => {
    const network = harness.networks[name];
    return network === undefined ? [] : [{ name, ...network }];
  });
  const [first] = running;
  if (first === undefined) return "";
  const payerKey = payers.funded?.privateKey;
  const lines: [string, string][] = [
    ...shopVariables({
      url: facilitator.url,
      apiKey: organization.apiKey,
      payerKey,
      network: { ...first, asset: first.asset.address },
    }),
    ...(payerKey === undefined ? [] : [["PAYER_PRIVATE_KEY", payerKey] as [string, string]]),
    ...running.flatMap(({ name, rpcUrl, facilitatorContract, tier }): [string, string][] => [
      [rpcVariableOf(name), rpcUrl],
      [contractVariables[tier ?? builtInNetworks.named(name)?.tier ?? "mainnet"], facilitatorContract],
    ]),
  ];
  return renderVariables(new Map(lines));
}

/* The parts that `up` and `mock` both print when they are ready. */

type Payers = Readonly<Record<string, { address: string; privateKey: string }>>;

/** Lists the test payers with their outcomes, then their addresses and keys, since a key is nearly a line wide. */
export function describePayers(payers: Payers): readonly string[] {
  const known: Readonly<Record<string, TestPayer>> = testPayers;
  const outcomes = Object.keys(payers).map((name) => {
    const { outcome = "", settleOutcome } = known[name] ?? {};
    return [name, settleOutcome === undefined ? outcome : `settle: ${settleOutcome}`];
  });
  const accounts = Object.entries(payers).map(([name, { address, privateKey }]) =>
    [`${name}: ${address}`, `  key ${privateKey}`].join("\n"),
  );
  return [renderTable(["payer", "outcome"], outcomes), "", ...accounts];
}

/** How long the payment in the printed curl stays valid: a day. */
export const curlValidSeconds = 86_400;

/** A line about the possible recipients of payments; none if only the facilitator contract is possible. */
export function describePayTo(policy: PayToPolicy = "contract"): readonly string[] {
  const told = {
    contract: [],
    recipients: ["the organization's own wallet, or the facilitator contract"],
    any: ["any address, such as a wallet of yours, or the facilitator contract"],
  };
  return told[policy];
}
