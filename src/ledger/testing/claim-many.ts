import { openDatabase } from "../../database/open-database.ts";
import { createTestLedger, paymentOf } from "./test-ledger.ts";

// A process of its own: node claim-many.ts DATABASE_URL INSTANCE_ID PAYMENTS BALANCE

const [url = "", instanceId = "", payments, balance] = process.argv.slice(2);

const db = await openDatabase({ url });
const ledger = createTestLedger(db, Date.now, { instanceId });
for (let nonce = 0; nonce < Number(payments); ) {
  // A few at a time, so that some share a commit.
  await Promise.all(
    Array.from({ length: 5 }, async () => {
      const mine = nonce++;
      const { outcomes, attempt } = await ledger.claimAll([
        paymentOf(mine, { value: 1n, balance: BigInt(balance ?? 0) }),
      ]);
      process.stdout.write(`${mine} ${outcomes[0]} ${attempt?.txNonce}\n`);
    }),
  );
}
await db.destroy();
