import { randomBytes } from "node:crypto";
import type { Kysely } from "kysely";
import { inTransaction } from "../../ledger/database/transactions.ts";
import { KitError } from "../../util/errors.ts";
import { type Author, lockOrganization, noOrganization, readChanges, recordChange } from "./audit.ts";
import {
  limitColumns,
  networkColumns,
  type OrganizationTables,
  toKeyRecord,
  toLimits,
  toOrganization,
} from "./organization-rows.ts";
import type { Organization, OrganizationAdministration } from "./organizations.ts";
import { type ReservedAddresses, requirePayable } from "./recipient.ts";

/** Makes {@link OrganizationAdministration}. */
export function createAdministration(
  db: Kysely<OrganizationTables>,
  author: Author,
  reserved: ReservedAddresses,
): OrganizationAdministration {
  const { now } = author;

  async function requireOrganization(id: string): Promise<void> {
    const known = await db.selectFrom("organizations").select("id").where("id", "=", id).executeTakeFirst();
    if (known === undefined) throw noOrganization(id);
  }

  async function readOrganizations(id?: string): Promise<Organization[]> {
    const all = db
      .selectFrom("organizations")
      .leftJoin("recipients", "recipients.organization_id", "organizations.id")
      .select(["organizations.id", "organizations.name", ...networkColumns])
      .orderBy("organizations.created_at")
      .orderBy("organizations.id")
      .orderBy("recipients.network");
    const rows = await (id === undefined ? all : all.where("organizations.id", "=", id)).execute();
    const byId = Map.groupBy(rows, (row) => row.id);
    return [...byId].map(([id, ofOne]) => toOrganization(id, ofOne[0]?.name ?? "", ofOne));
  }

  return {
    async create({ id = `org_${randomBytes(8).toString("hex")}`, name }) {
      if (!/^[0-9A-Za-z_-]{1,64}$/.test(id)) {
        throw new KitError(
          `The organization id ${JSON.stringify(id)} must be 1 to 64 letters, digits, _ or -`,
        );
      }
      if (!isLine(name))
        throw new KitError("The organization's name must be 1 to 100 characters on one line");
      await inTransaction(db, async (transaction) => {
        const created = await transaction
          .insertInto("organizations")
          .values({ id, name, created_at: now() })
          .onConflict((conflict) => conflict.column("id").doNothing())
          .returning("id")
          .executeTakeFirst();
        if (created === undefined) throw new KitError(`There is an organization ${id} already`);
        await recordChange(transaction, author, id, "organization created", { name });
      });
      return { id, name, recipients: {}, limits: {} };
    },

    find: async (id) => (await readOrganizations(id))[0] ?? null,
    list: () => readOrganizations(),

    async setRecipient(organizationId, network, recipient) {
      requirePayable(recipient, network, reserved);
      await inTransaction(db, async (transaction) => {
        await lockOrganization(transaction, organizationId);
        const before = await transaction
          .selectFrom("recipients")
          .select("recipient")
          .where("organization_id", "=", organizationId)
          .where("network", "=", network)
          .executeTakeFirst();
        if (before?.recipient === recipient) return;
        await transaction
          .insertInto("recipients")
          .values({ organization_id: organizationId, network, recipient })
          .onConflict((conflict) =>
            conflict.columns(["organization_id", "network"]).doUpdateSet({ recipient }),
          )
          .execute();
        const change = { network, from: before?.recipient ?? null, to: recipient };
        await recordChange(transaction, author, organizationId, "recipient set", change);
      });
    },

    setLimits: createSetLimits(db, author),

    async listKeys(organizationId) {
      await requireOrganization(organizationId);
      const rows = await db
        .selectFrom("api_keys")
        .select(["id", "organization_id", "scopes", "created_at", "expires_at", "revoked_at", "replaced_by"])
        .where("organization_id", "=", organizationId)
        .orderBy("created_at")
        .orderBy("id")
        .execute();
      const time = now();
      return rows.map((row) => toKeyRecord(row, time));
    },

    revokeKey: createRevokeKey(db, author),

    async listChanges(organizationId) {
      await requireOrganization(organizationId);
      return readChanges(db, organizationId);
    },
  };
}

/** Makes {@link OrganizationAdministration.setLimits}. */
function createSetLimits(
  db: Kysely<OrganizationTables>,
  author: Author,
): OrganizationAdministration["setLimits"] {
  return (organizationId, network, limits) =>
    inTransaction(db, async (transaction) => {
      await lockOrganization(transaction, organizationId);
      const row = await transaction
        .selectFrom("recipients")
        .select(limitColumns)
        .where("organization_id", "=", organizationId)
        .where("network", "=", network)
        .executeTakeFirst();
      if (row === undefined) {
        throw new KitError(`The organization ${organizationId} has no recipient on ${network}`, {
          hints: ["Set one first: limits are of payments to it."],
        });
      }
      const before = toLimits(row);
      const {
        minimumAmount = before.minimumAmount,
        dailyGasBudget = before.dailyGasBudget,
        refusePayersWithCode = before.refusePayersWithCode,
      } = limits;
      if ((minimumAmount ?? 0n) < 0n || (dailyGasBudget ?? 0n) < 0n) {
        throw new KitError("A limit must not be negative");
      }
      const after = {
        minimum_amount: minimumAmount?.toString() ?? null,
        daily_gas_budget: dailyGasBudget?.toString() ?? null,
        refuse_payers_with_code: refusePayersWithCode ? 1 : 0,
      };
      if (limitColumns.every((column) => after[column] === row[column])) return;
      await transaction
        .updateTable("recipients")
        .set(after)
        .where("organization_id", "=", organizationId)
        .where("network", "=", network)
        .execute();
      await recordChange(transaction, author, organizationId, "limits set", {
        network,
        minimumAmount: after.minimum_amount,
        dailyGasBudget: after.daily_gas_budget,
        refusePayersWithCode,
      });
    });
}

/** Makes {@link OrganizationAdministration.revokeKey}. */
function createRevokeKey(
  db: Kysely<OrganizationTables>,
  author: Author,
): OrganizationAdministration["revokeKey"] {
  return (keyId) =>
    inTransaction(db, async (transaction) => {
      const revoked = await transaction
        .updateTable("api_keys")
        .set({ revoked_at: author.now() })
        .where("id", "=", keyId)
        .where("revoked_at", "is", null)
        .returning("organization_id")
        .executeTakeFirst();
      if (revoked !== undefined) {
        await recordChange(transaction, author, revoked.organization_id, "key revoked", { keyId });
        return;
      }
      const known = await transaction
        .selectFrom("api_keys")
        .select("id")
        .where("id", "=", keyId)
        .executeTakeFirst();
      if (known === undefined) throw noKey(keyId);
    });
}

export function noKey(keyId: string): KitError {
  return new KitError(`There is no key with the id ${JSON.stringify(keyId)}`);
}

/** Whether a text can stand in a table and in a log. */
export function isLine(text: string): boolean {
  return /^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]{1,100}$/u.test(text) && text.trim() === text;
}
