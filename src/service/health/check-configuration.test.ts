import { expect, test } from "vitest";
import { checkDiskSpace, checkSignatureRecovery } from "./check-configuration.ts";

test("an installation without libsecp256k1 is warned of, with the way out", () => {
  expect(checkSignatureRecovery(true)).toBeUndefined();
  expect(checkSignatureRecovery(false)).toEqual({
    name: "signatures",
    status: "warning",
    detail: expect.stringMatching(/^are recovered in JavaScript, .* has no binary for \w+ on \w+$/),
    advice: expect.stringContaining("C++ compiler"),
  });
});

const mib = 2 ** 20;

test("a disk with little room for the SQLite file is warned of, with its folder", () => {
  const checks = checkDiskSpace("sqlite:/var/lib/pay/facilitator.db", { freeBytes: () => 200.5 * mib });
  expect(checks).toMatchInlineSnapshot(`
    [
      {
        "advice": "Make room, or move the file of DATABASE_URL to a larger disk while serve is stopped.",
        "detail": "200 MiB are free in /var/lib/pay; on a full disk no payment can be settled",
        "name": "disk",
        "status": "warning",
      },
    ]
  `);
});

test("nothing is said of a disk with room, of Postgres, and of a folder that is not there", () => {
  const full = { freeBytes: () => 0 };
  expect(checkDiskSpace("sqlite:./facilitator.db", { freeBytes: () => 1_024 * mib })).toEqual([]);
  expect(checkDiskSpace("postgres://host/database", full)).toEqual([]);
  expect(checkDiskSpace("sqlite::memory:", full)).toEqual([]);
  expect(checkDiskSpace("sqlite:/no/such/folder/facilitator.db")).toEqual([]);
});
