import { randomBytes } from "node:crypto";
import type { Kysely, Transaction } from "kysely";
import { inTransaction } from "../../ledger/database/transactions.ts";
import { KitError } from "../../util/errors.ts";
import { self } from "../../util/self-command.ts";
import {
  limitColumns,
  networkColumns,
  type OrganizationTables,
  toKeyRecord,
  toLimits,
  toOrganization,
} from "./organization-rows.ts";
import {
  type ChangeAction,
  changeActions,
  type Organization,
  type OrganizationAdministration,
  type ReservedAddresses,
  requirePayable,
} from "./organizations.ts";

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
      const rows = await db
        .selectFrom("audit")
        .select(["change", "at", "actor", "action", "details"])
        .where("organization_id", "=", organizationId)
        .orderBy("change")
        .execute();
      return rows.map(({ change, at, actor, action, details }) => ({
        number: change,
        at,
        actor,
        action: toAction(action),
        details: JSON.parse(details),
      }));
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
  return new KitError(`There is no key with the id ${JSON.stringify(keyId)}`, { code: "not-found" });
}

/** Returns true if a text can be shown in a table and in a log. */
export function isLine(text: string): boolean {
  return /^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]{1,100}$/u.test(text) && text.trim() === text;
}

/** The author and the clock for changes. */
export type Author = { actor: string; now: () => number };

/**
 * Makes every other change of the organization wait until this transaction ends, so that what is read from now on is
 * the state that the change replaces.
 *
 * @throws KitError when there is no such organization.
 */
export async function lockOrganization(
  transaction: Transaction<OrganizationTables>,
  id: string,
): Promise<void> {
  const locked = await transaction
    .updateTable("organizations")
    .set((row) => ({ changes: row.ref("changes") }))
    .where("id", "=", id)
    .returning("id")
    .executeTakeFirst();
  if (locked === undefined) throw noOrganization(id);
}

export function noOrganization(id: string): KitError {
  return new KitError(`There is no organization ${JSON.stringify(id)}`, {
    code: "not-found",
    hints: [`${self} org list shows those that there are, and ${self} org create adds one.`],
  });
}

/** Adds a change to the audit trail, in the transaction that makes it. */
export async function recordChange(
  transaction: Transaction<OrganizationTables>,
  { actor, now }: Author,
  organizationId: string,
  action: ChangeAction,
  details: Record<string, string | number | boolean | readonly string[] | null>,
): Promise<void> {
  const { changes } = await transaction
    .updateTable("organizations")
    .set((row) => ({ changes: row("changes", "+", 1) }))
    .where("id", "=", organizationId)
    .returning("changes")
    .executeTakeFirstOrThrow();
  await transaction
    .insertInto("audit")
    .values({
      organization_id: organizationId,
      change: changes,
      at: now(),
      actor,
      action,
      details: JSON.stringify(details),
    })
    .execute();
}

function toAction(text: string): ChangeAction {
  const action = changeActions.find((known) => known === text);
  if (action === undefined)
    throw new KitError(`The audit trail has an unknown action ${JSON.stringify(text)}`);
  return action;
}
