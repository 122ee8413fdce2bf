import { randomUUID } from "node:crypto";
import { afterEach, describe, expect, test, vi } from "vitest";
import { backends, useTestDatabase } from "../../test/support/databases.ts";
import { hashOf } from "../../test/support/ledger/test-ledger.ts";
import { warnOfClock } from "../service/health/check-database.ts";
import { createLedger } from "./create-ledger.ts";

afterEach(() => void vi.restoreAllMocks());

/** From now on this machine's clock is wrong by so much. */
function shiftClock(byMs: number): void {
  const realNow = Date.now.bind(Date);
  vi.spyOn(Date, "now").mockImplementation(() => realNow() + byMs);
}

describe.each(backends.filter(({ name }) => name === "Postgres"))("on $name", (backend) => {
  const database = useTestDatabase(backend);
  const openLedger = async () => createLedger({ db: await database.open(), instanceId: randomUUID() });

  test.each([
    { clock: "a minute ahead", byMs: 60_000 },
    { clock: "an hour ahead", byMs: 3_600_000 },
    { clock: "an hour behind", byMs: -3_600_000 },
  ])(
    "an instance whose clock is $clock takes nothing that another has, and keeps its own",
    async ({ byMs }) => {
      const [held, own] = [hashOf(`held ${byMs}`), hashOf(`own ${byMs}`)];
      const right = await openLedger();
      expect(await right.leases.acquireLease(held, "one")).toBe(true);
      expect(await right.leases.beginIdempotent("org", "key", "body")).toEqual({ status: "new" });

      shiftClock(byMs);
      const wrong = await openLedger();
      await wrong.leases.renewLeases();
      expect(await wrong.leases.acquireLease(held, "two")).toBe(false);
      expect(await wrong.leases.findLease(held)).toMatchObject({ isOwn: false });
      expect(await wrong.leases.beginIdempotent("org", "key", "body")).toEqual({ status: "running" });
      expect(await wrong.leases.acquireLease(own, "two")).toBe(true);
      expect(await wrong.leases.beginIdempotent("org", "own", "body")).toEqual({ status: "new" });
      await wrong.leases.renewLeases();

      vi.restoreAllMocks();
      expect(await right.leases.acquireLease(own, "one")).toBe(false);
      expect(await right.leases.beginIdempotent("org", "own", "body")).toEqual({ status: "running" });
    },
  );

  test("a clock that differs by more than two seconds is warned of", async () => {
    const db = await database.open();
    expect(warnOfClock(db)).toBeNull();
    shiftClock(3_000);
    expect(warnOfClock(db)).toMatchObject({ name: "clock", status: "warning" });
  });
});
