import { describe, expect, test } from "vitest";
import { backends, useTestDatabase } from "../../test/support/databases.ts";
import { failed, openTestLedger, paymentOf, settled } from "../../test/support/ledger/test-ledger.ts";

describe.each(backends)("on $name, the reverts of a payer", (backend) => {
  const database = useTestDatabase(backend);

  async function open() {
    const { clock, ledger } = await openTestLedger(database);
    const { payer, chainId, asset } = paymentOf("a");
    let txNonce = 0;
    return {
      /** Settles a payment in a block of its own; gives when it was decided. */
      async decide(ending: typeof failed, changes: { payer?: number } = {}): Promise<number> {
        clock.advance(1_000);
        const payment = paymentOf(txNonce, { balanceBlock: 50n, ...changes });
        await ledger.claimAll([payment]);
        await ledger.mine(txNonce, [ending(payment)], 60n + BigInt(txNonce));
        txNonce++;
        return clock.now();
      },
      last: (limit = 9) => ledger.lastReverts({ payer, chainId, asset }, limit),
    };
  }

  test("are those since the last payment that was made, newest first, and its own", async () => {
    const { decide, last } = await open();
    await decide(failed);
    await decide(settled);
    const [first, second, third] = [await decide(failed), await decide(failed), await decide(failed)];
    await decide(failed, { payer: 2 });
    await decide(settled, { payer: 2 });
    expect(await last()).toEqual([third, second, first]);
    expect(await last(2)).toEqual([third, second]);
  });

  test("are none once one is paid", async () => {
    const { decide, last } = await open();
    expect(await last()).toEqual([]);
    await decide(failed);
    await decide(settled);
    expect(await last()).toEqual([]);
  });
});
