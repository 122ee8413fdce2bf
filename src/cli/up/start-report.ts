import { type TestPayer, testPayers } from "../../published/test-payers.ts";
import { renderTable } from "../../util/table.ts";

/*
 * What `up` and `mock` both print when they are ready.
 */

type Payers = Readonly<Record<string, { address: string; privateKey: string }>>;

/** The test payers with what becomes of their payments; their keys in a second table, as one would be too wide. */
export function describePayers(payers: Payers): readonly string[] {
  const known: Readonly<Record<string, TestPayer>> = testPayers;
  const outcomes = Object.entries(payers).map(([name, { address }]) => {
    const { outcome = "", settleOutcome } = known[name] ?? {};
    return [name, address, settleOutcome === undefined ? outcome : `settle: ${settleOutcome}`];
  });
  const keys = Object.entries(payers).map(([name, { privateKey }]) => [name, privateKey]);
  return [
    renderTable(["payer", "address", "outcome"], outcomes),
    "",
    renderTable(["payer", "private key"], keys),
  ];
}

/** How long the payment of the printed curl can be settled: a day. */
export const curlValidSeconds = 86_400;

/** The command that verifies a payment. */
export function verifyCurl(
  { facilitator, organization }: { facilitator: { url: string }; organization: { apiKey: string } },
  body: object,
): string {
  return [
    `curl -s ${facilitator.url}/verify \\`,
    `  -H 'Authorization: ${organization.apiKey}' \\`,
    "  -H 'Content-Type: application/json' \\",
    `  -d '${JSON.stringify(body)}'`,
  ].join("\n");
}
