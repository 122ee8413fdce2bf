import { type TestPayer, testPayers } from "../../published/test-payers.ts";
import { renderTable } from "../kit/table.ts";

type Payers = Readonly<Record<string, { address: string; privateKey: string }>>;

/** The test payers, and what becomes of their payments. */
export function payerTable(payers: Payers): string {
  const known: Readonly<Record<string, TestPayer>> = testPayers;
  return renderTable(
    [{ heading: "payer" }, { heading: "address" }, { heading: "outcome" }],
    Object.entries(payers).map(([name, { address }]) => {
      const { outcome = "", settleOutcome } = known[name] ?? {};
      return [name, address, settleOutcome === undefined ? outcome : `settle: ${settleOutcome}`];
    }),
  );
}

/** Their keys, in a table of its own: beside address and outcome they would be wider than a terminal. */
export function payerKeyTable(payers: Payers): string {
  return renderTable(
    [{ heading: "payer" }, { heading: "private key" }],
    Object.entries(payers).map(([name, { privateKey }]) => [name, privateKey]),
  );
}
