import type { Kysely, Transaction } from "kysely";
import { KitError } from "../../util/errors.ts";
import { self } from "../../util/self-command.ts";
import type { OrganizationTables } from "./organization-rows.ts";
import { type Change, type ChangeAction, changeActions } from "./organizations.ts";

/** Who changes something, and when. */
export type Author = { actor: string; now: () => number };

/**
 * Makes every other change of the organization wait until this transaction ends, so that what is read from now on is
 * what the change replaces.
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

export async function readChanges(
  db: Kysely<OrganizationTables>,
  organizationId: string,
): Promise<readonly Change[]> {
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
}

function toAction(text: string): ChangeAction {
  const action = changeActions.find((known) => known === text);
  if (action === undefined)
    throw new KitError(`The audit trail has an unknown action ${JSON.stringify(text)}`);
  return action;
}
