import type { Ledger } from "../../ledger/ledger.ts";
import { isSetAside } from "../../ledger/settlement.ts";
import { finalitySeconds } from "../../protocol/refusals.ts";
import { plural } from "../../protocol/token-units.ts";
import { self } from "../../util/self-command.ts";
import { type Check, warning } from "./check.ts";

/** The number of old undecided settlements that are looked at. */
const most = 1_000;

/** Warns of settlements that are set aside: mined long ago, by a transaction that does not prove what became of them. */
export async function checkSettlements(
  { claims }: Pick<Ledger, "claims">,
  now: number,
): Promise<readonly Check[]> {
  const old = { state: "submitted" as const, to: now - finalitySeconds * 1000 };
  const { settlements } = await claims.list(old, { limit: most });
  const count = settlements.filter((settlement) => isSetAside(settlement, now)).length;
  if (count === 0) return [];
  const detail = `${plural(count, "settlement")} mined more than half an hour ago without proof of the outcome: set aside`;
  const advice = `Run ${self} settlements reexamine, which says what the chain shows of each. The service looks for proof once a minute; it answers neither success nor failure until then.`;
  return [warning("settlements", detail, advice)];
}
