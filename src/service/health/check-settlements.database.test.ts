import { expect, test } from "vitest";
import { backends, useTestDatabase } from "../../../test/support/databases.ts";
import { openTestLedger, paymentOf, settled } from "../../../test/support/ledger/test-ledger.ts";
import { checkSettlements } from "./check-settlements.ts";

const [backend] = backends;
if (backend === undefined) throw new Error("no database");
const database = useTestDatabase(backend);

test("undecided settlements of a network that is not served are warned of", async () => {
  const { ledger, clock } = await openTestLedger(database);
  await ledger.claimAll([paymentOf("a"), paymentOf("b")]);
  const check = (names: readonly string[]) =>
    checkSettlements(
      ledger,
      clock.now(),
      names.map((name) => ({ name })),
    );
  expect(await check(["base"])).toEqual([]);
  expect(await check([])).toMatchObject([{ name: "settlements", status: "warning" }]);
  await ledger.mine(0, [paymentOf("a"), paymentOf("b")].map(settled));
  expect(await check([])).toEqual([]);
});
