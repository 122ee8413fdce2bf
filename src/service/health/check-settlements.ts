import type { Ledger } from "../../ledger/ledger.ts";
import { isSetAside } from "../../ledger/settlement.ts";
import type { Network } from "../../protocol/networks.ts";
import { finalitySeconds } from "../../protocol/refusals.ts";
import { plural } from "../../protocol/token-units.ts";
import { self } from "../../util/self-command.ts";
import { type Check, warning } from "./check.ts";

/** The maximum number of old undecided settlements examined. */
const most = 1_000;

/**
 * Warns of undecided settlements that need attention: those set aside because the transaction that held them was mined
 * long ago without proof of their outcome, and those of networks that are not served.
 */
export async function checkSettlements(
  { claims, outcomes }: Pick<Ledger, "claims" | "outcomes">,
  now: number,
  served: readonly Pick<Network, "name">[],
): Promise<readonly Check[]> {
  const unserved = (await outcomes.unfinished()).filter(({ network }) =>
    served.every(({ name }) => name !== network),
  );
  const waiting = unserved.map(({ network, count }) => {
    const detail = `${plural(count, "undecided settlement")} of ${network}, which is not served`;
    return warning(
      "settlements",
      detail,
      `Serve ${network} until its settlements are decided; nothing is lost until then.`,
    );
  });
  const old = { state: "submitted" as const, to: now - finalitySeconds * 1000 };
  const { settlements } = await claims.list(old, { limit: most });
  const count = settlements.filter((settlement) => isSetAside(settlement, now)).length;
  if (count === 0) return waiting;
  const detail = `${plural(count, "settlement")} mined more than half an hour ago without proof of the outcome: set aside`;
  const advice = `Run ${self} settlements reexamine, which says what the chain shows of each. The service looks for proof once a minute; it answers neither success nor failure until then.`;
  return [warning("settlements", detail, advice), ...waiting];
}
