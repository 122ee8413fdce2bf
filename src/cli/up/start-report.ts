import type { PayToPolicy } from "../../protocol/signed-payment.ts";
import { type TestPayer, testPayers } from "../../published/test-payers.ts";
import { renderTable } from "../../util/table.ts";

/*
 * What `up` and `mock` both print when they are ready.
 */

type Payers = Readonly<Record<string, { address: string; privateKey: string }>>;

/** The test payers with what becomes of their payments; addresses and keys below, since a key is nearly a line wide. */
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

/** How long the payment of the printed curl can be settled: a day. */
export const curlValidSeconds = 86_400;

/** Where payments may go, in a line, unless that is to the facilitator contract alone. */
export function describePayTo(policy: PayToPolicy = "contract"): readonly string[] {
  const told = {
    contract: [],
    recipients: ["the organization's own wallet, or the facilitator contract"],
    any: ["any address, such as a wallet of yours, or the facilitator contract"],
  };
  return told[policy];
}
