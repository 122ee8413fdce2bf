import { Migrator } from "kysely/migration";
import { describe, expect, test } from "vitest";
import { main } from "../../../src/cli/main.ts";
import { initial } from "../../../src/ledger/database/migrations/initial-migration.ts";
import { encodeTransaction } from "../../../src/protocol/encode-transaction.ts";
import { backends, useTestDatabase } from "../../support/databases.ts";
import { addressOf, asset, chainId, hashOf, operator, paymentOf } from "../../support/ledger/test-ledger.ts";

const contract = addressOf(0xc0);
const other = addressOf(0xc1);

describe.each(backends)("a database of $name with a payment under way that is behind", (backend) => {
  const database = useTestDatabase(backend, { migrated: false });

  async function migrate(
    args: readonly string[],
    env: Record<string, string>,
    { command = "migrate", interrupted = new AbortController().signal } = {},
  ) {
    const printed: string[] = [];
    const code = await main([command, ...args], {
      print: (text) => printed.push(text),
      printError: (text) => printed.push(text),
      env: { DATABASE_URL: database.url, ...env },
      takeSignals: () => interrupted,
    });
    return { code, text: printed.join("\n") };
  }

  test.each(["migrate", "serve, for another network"])(
    "is migrated by %s once the configuration names the payment's contract; until then nothing is changed",
    async (by) => {
      const db = await database.open();
      const provider = { getMigrations: async () => ({ [initial.name]: initial }) };
      expect((await new Migrator({ db, provider }).migrateToLatest()).error).toBeUndefined();
      const insert = (table: string, row: Record<string, string | number | null>) =>
        db.$extendTables<Record<string, typeof row>>().insertInto(table).values(row).execute();
      const { id, payer, nonce, digest, signature, recipient } = paymentOf("open");
      const sent = { chain_id: chainId, operator: operator.toLowerCase(), tx_nonce: 0 };
      await insert("organizations", { id: "shop", name: "Shop", created_at: 1 });
      await insert("operator_nonces", {
        ...{ chain_id: chainId, operator: operator.toLowerCase(), next_tx_nonce: 1 },
      });
      await insert("settlements", {
        ...{ ...sent, id, organization_id: "shop", network: "base", asset: asset.toLowerCase(), payer },
        ...{ authorization_nonce: nonce, digest, value: "30", valid_after: "0", valid_before: "1900000000" },
        ...{ signature, recipient, state: "submitted", transaction_hash: hashOf("t"), block_number: null },
        ...{ block_hash: null, failure: null, claimed_block: 50, used_by_block: null, next_look_at: 0 },
        ...{ claimed_at: 1, concluded_at: null, delivered_at: null },
      });
      const fields = {
        chainId,
        nonce: 0,
        maxPriorityFeePerGas: 1n,
        maxFeePerGas: 2n,
        gas: 500_000n,
        to: contract,
      };
      const raw = encodeTransaction(
        { ...fields, data: "0x12345678" },
        { r: "11".repeat(32), s: "22".repeat(32), yParity: 0 },
      );
      await insert("attempts", {
        ...{ ...sent, hash: hashOf("t"), kind: "settle", raw, state: "open", created_at: 1 },
        ...{ max_fee_per_gas: "2", max_priority_fee_per_gas: "1" },
      });

      const wrong = { FACILITATOR_CONTRACT_MAINNET: other };
      const dryRun = await migrate(["--dry-run", "--json"], wrong);
      expect(dryRun.code).toBe(1);
      expect(JSON.parse(dryRun.text)).toMatchObject({
        applied: false,
        contractsNeeded: [{ network: "base", contract, settlements: 1 }],
      });
      const refused = await migrate([], wrong);
      expect(refused.code).toBe(1);
      expect(refused.text).toContain(contract);
      const serving = {
        BASE_SEPOLIA_RPC_URL: "http://127.0.0.1:9",
        FACILITATOR_CONTRACT_TESTNET: addressOf(0xc2),
        OPERATOR_PRIVATE_KEY: `0x${"5a".repeat(32)}`,
        API_KEY_PEPPER: "8c1f0b6e2d94a7535ef1c60a9b27d84e63f7205ab81c4d9e07a26fb35c98e1d4",
        PORT: "0",
        LOG_LEVEL: "error",
      };
      const served = await migrate(["--migrate"], { ...serving, ...wrong }, { command: "serve" });
      expect(served.code).toBe(1);
      expect(served.text).toContain(contract);
      const doctor = async () => {
        const { text } = await migrate(["--json"], { ...serving, ...wrong }, { command: "doctor" });
        const parts: { name: string; checks: object[] }[] = JSON.parse(text).parts;
        return parts.find(({ name }) => name === "database")?.checks;
      };
      const finding = { name: "contracts", detail: expect.stringContaining(contract) };
      expect(await doctor()).toContainEqual(expect.objectContaining({ ...finding, status: "failed" }));
      expect((await migrate(["--dry-run"], { FACILITATOR_CONTRACT_MAINNET: contract })).code).toBe(0);
      const right = { FACILITATOR_CONTRACT_MAINNET: `${other},${contract}` };
      if (by === "migrate") expect((await migrate(["--json"], right)).code).toBe(0);
      else {
        const interrupted = AbortSignal.abort();
        await migrate(["--migrate"], { ...serving, ...right }, { command: "serve", interrupted });
      }
      expect(await doctor()).toContainEqual(expect.objectContaining({ ...finding, status: "warning" }));
      const rows = await db
        .$extendTables<Record<string, { contract: string }>>()
        .selectFrom("settlements")
        .select("contract")
        .execute();
      expect(rows).toEqual([{ contract }]);
    },
  );
});
