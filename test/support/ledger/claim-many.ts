import { openDatabase } from "../../../src/ledger/database/open-database.ts";
import { createTestLedger, paymentOf } from "./test-ledger.ts";

// A separate process: node claim-many.ts DATABASE_URL INSTANCE_ID PAYMENTS BALANCE [PREFIX]

const [url = "", instanceId = "", payments, balance, prefix = ""] = process.argv.slice(2);

const db = await openDatabase({ url });
const ledger = createTestLedger(db, Date.now, { instanceId });
for (let next = 0; next < Number(payments); ) {
  // A few at a time, so that some share a commit.
  await Promise.all(
    Array.from({ length: 5 }, async () => {
      const nonce = `${prefix}${next++}`;
      const { outcomes, attempt } = await ledger.claimAll([
        paymentOf(nonce, { amount: 1n, balance: BigInt(balance ?? 0) }),
      ]);
      process.stdout.write(`${nonce} ${outcomes[0]} ${attempt?.txNonce}\n`);
    }),
  );
}
await db.destroy();
