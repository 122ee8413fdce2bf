import { createHash } from "node:crypto";
import type { Transaction } from "kysely";
import type { Logger } from "pino";
import type { Database } from "../../ledger/database/database.ts";
import { inTransaction } from "../../ledger/database/transactions.ts";
import type { WaysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import {
  type DiscoveredResource,
  discoveredResourceSchema,
  mostResources,
  writtenForMs,
} from "../../protocol/discovery/discovery-schemas.ts";
import { mergeResource, readResource, type SeenResource } from "../../protocol/discovery/read-resource.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { createBoundedMap } from "../../util/cache.ts";
import { createPending } from "../../util/concurrency.ts";

/** A resource that an organization was paid for. */
type ResourcesTable = {
  organization_id: string;
  /** A hash of type, URL and tool, which identify the resource. */
  resource_key: string;
  /** A `DiscoveredResource` without its time, as JSON. */
  document: string;
  /** Unix milliseconds. */
  updated_at: number;
};

export type DiscoveryTables = { resources: ResourcesTable };

/** The catalog of resources that organizations were paid for. */
export type Catalog = {
  /**
   * Records the resource of a settled payment. Does not delay the answer or throw; may skip a resource under load.
   *
   * @param body the request that contained the payment, as JSON
   */
  note(organizationId: string, body: unknown, payment: PaymentRequest): void;
  /** An organization's resources, most recently paid first. */
  read(organizationId: string): Promise<readonly DiscoveredResource[]>;
  /** Resolves once all writes have ended. */
  settled(): Promise<void>;
};

const mostRemembered = 10_000;
/** The rest of the ten connections to Postgres is left to settles. */
const mostWritesAtOnce = 2;
const documentSchema = discoveredResourceSchema.omit({ lastUpdated: true });

export function createCatalog({
  database,
  ways,
  now,
  log,
}: {
  database: Database;
  ways: WaysToPay;
  /** Unix milliseconds. */
  now: () => number;
  log: Pick<Logger, "warn">;
}): Catalog {
  const db = database.$extendTables<DiscoveryTables>();
  const written = createBoundedMap<string, number>(mostRemembered);
  const pending = createPending();
  let writing = 0;

  const write = pending.track((organizationId: string, { key, resource }: SeenResource) =>
    inTransaction(db, async (transaction) => {
      const resourceKey = hash(key);
      const row = await transaction
        .selectFrom("resources")
        .select("document")
        .where("organization_id", "=", organizationId)
        .where("resource_key", "=", resourceKey)
        .executeTakeFirst();
      const earlier = row === undefined ? undefined : readDocument(row.document);
      const changes = { document: JSON.stringify(mergeResource(earlier, resource)), updated_at: now() };
      await transaction
        .insertInto("resources")
        .values({ organization_id: organizationId, resource_key: resourceKey, ...changes })
        .onConflict((conflict) => conflict.columns(["organization_id", "resource_key"]).doUpdateSet(changes))
        .execute();
      if (row === undefined) await makeRoom(transaction, organizationId);
    }),
  );

  return {
    note(organizationId, body, payment) {
      if (writing >= mostWritesAtOnce) return;
      const seen = readResource(body, payment, ways.methodOf(payment.payment.method));
      if (seen === undefined) return;
      // Hashed, since a resource can take 10 KB, and thousands are remembered.
      const what = hash(JSON.stringify([organizationId, seen]));
      const last = written.get(what);
      if (last !== undefined && now() - last < writtenForMs) return;
      written.renew(what, now());
      writing++;
      write(organizationId, seen)
        .catch((error: unknown) => {
          written.delete(what);
          log.warn({ err: error }, "what was paid for could not be recorded for discovery");
        })
        .finally(() => {
          writing--;
        });
    },

    async read(organizationId) {
      const rows = await db
        .selectFrom("resources")
        .select(["document", "updated_at"])
        .where("organization_id", "=", organizationId)
        .orderBy("updated_at", "desc")
        .orderBy("resource_key")
        .limit(mostResources)
        .execute();
      return rows.flatMap(({ document, updated_at }) => {
        const resource = readDocument(document);
        const lastUpdated = new Date(Number(updated_at)).toISOString();
        return resource === undefined ? [] : [{ ...resource, lastUpdated }];
      });
    },

    settled: pending.settled,
  };
}

const hash = (text: string) => createHash("sha256").update(text).digest("hex");

function readDocument(text: string): SeenResource["resource"] | undefined {
  return documentSchema.safeParse(JSON.parse(text)).data;
}

async function makeRoom(transaction: Transaction<DiscoveryTables>, organizationId: string): Promise<void> {
  const surplus = await transaction
    .selectFrom("resources")
    .select("resource_key")
    .where("organization_id", "=", organizationId)
    .orderBy("updated_at", "desc")
    .orderBy("resource_key")
    .limit(100)
    .offset(mostResources)
    .execute();
  if (surplus.length === 0) return;
  const keys = surplus.map(({ resource_key }) => resource_key);
  await transaction
    .deleteFrom("resources")
    .where("organization_id", "=", organizationId)
    .where("resource_key", "in", keys)
    .execute();
}
