import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { userInfo } from "node:os";
import { beforeEach, describe, expect, test } from "vitest";
import { migrations } from "../../../src/ledger/database/migrations/later-migrations.ts";
import { networks } from "../../../src/protocol/networks.ts";
import { createOrganizations } from "../../../src/service/organizations/create-organizations.ts";
import { backends, useTestDatabase } from "../../support/databases.ts";
import { createTestLedger, failed, paymentOf, settled } from "../../support/ledger/test-ledger.ts";
import { postgresPassword } from "../../support/postgres.ts";
import { runHere } from "../../support/run-here.ts";

/*
 * The operator's commands on a database, as `x402-kit` runs them.
 */

const pepper = "9f2c1b7a6e5d4c3b2a1908f7e6d5c4b3";
const recipient = "0x857b06519E91e3A54538791bDbb0E22373e36b66";

describe.each(backends)("on $name", (backend) => {
  const database = useTestDatabase(backend);

  const x402 = (...args: string[]) => runHere(args, { DATABASE_URL: database.url, API_KEY_PEPPER: pepper });
  /** The output of a command that succeeds. */
  async function output(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await x402(...args);
    expect({ code, stderr }, args.join(" ")).toEqual({ code: 0, stderr: "" });
    return stdout;
  }
  const json = async (...args: string[]) => JSON.parse(await output(...args, "--json"));

  test("an organization, from nothing to its first key", async () => {
    expect(await output("org", "list")).toContain("There is no organization yet");
    const { id } = await json("org", "create", "--name", "Coffee shop");
    expect(await output("org", "show", "--id", id)).toContain("No recipient yet");
    await output("org", "set-recipient", "--id", id, "--network", "base", "--address", recipient);
    await output("org", "set-limits", "--id", id, "--network", "base", "--minimum-amount", "10000");
    await output(
      "org",
      "set-limits",
      "--id",
      id,
      "--network",
      "base",
      "--daily-gas-budget",
      "5000000000000000",
    );
    const onBase = ["--id", id, "--network", "base"];
    const refused = await output("org", "set-limits", ...onBase, "--payers-with-code", "refuse");
    expect(refused).toMatch(/10000 +5000000000000000 +refused/);
    const { key, keyId } = await json("key", "create", "--org", id, "--scopes", "verify", "--expires", "90d");

    const shown = await json("org", "show", "--id", id);
    expect(shown).toMatchObject({
      id,
      name: "Coffee shop",
      networks: {
        base: {
          recipient,
          minimumAmount: "10000",
          dailyGasBudget: "5000000000000000",
          refusePayersWithCode: true,
        },
      },
      keys: [{ keyId, state: "active", scopes: ["verify"] }],
    });
    expect(Date.parse(shown.keys[0].expiresAt) - Date.now()).toBeGreaterThan(89 * 24 * 60 * 60 * 1000);
    expect(await output("org", "list")).toContain(`${id}  Coffee shop  base`);

    const organizations = createOrganizations({ db: await database.open(), pepper, now: Date.now });
    expect(await organizations.authenticate(key)).toMatchObject({ organization: { id }, scopes: ["verify"] });
  });

  test("a recipient that would keep what it is paid is refused: the contract, a token, and a mistyped wallet", async () => {
    await output("org", "create", "--name", "Shop", "--id", "shop");
    const contract = "0x652026B65e32ffC7487F89D68D208977789a04d3";
    const token = "0x60a3E35Cc302bFA44Cb288Bc5a4F316Fdb1adb42";
    const ASSETS = JSON.stringify([
      { network: "base", address: token, name: "EURC", version: "2", decimals: 6 },
    ]);
    const refusalOf = async (address: string, exitCode = 1) => {
      const { code, stderr } = await runHere(
        ["org", "set-recipient", "--id", "shop", "--network", "base", "--address", address],
        { DATABASE_URL: database.url, FACILITATOR_CONTRACT_MAINNET: contract, ASSETS },
      );
      expect(code).toBe(exitCode);
      return stderr;
    };
    expect(await refusalOf(contract)).toContain("is the facilitator contract on base, and not a wallet");
    expect(await refusalOf(token)).toContain('is the token "EURC" on base, and not a wallet');
    expect(await refusalOf(networks.base.usdc.address)).toContain("is the token USDC on base");
    expect(await refusalOf(recipient.replace("b66", "b67"), 2)).toContain("has a wrong checksum (EIP-55)");
    expect(await refusalOf(`0x${"0".repeat(40)}`, 2)).toContain("is the zero address");
    expect((await json("org", "show", "--id", "shop")).networks).toEqual({});
  });

  test("limits are taken away by name", async () => {
    await output("org", "create", "--name", "Shop", "--id", "shop");
    await output("org", "set-recipient", "--id", "shop", "--network", "base", "--address", recipient);
    await output("org", "set-limits", "--id", "shop", "--network", "base", "--minimum-amount", "1");
    const after = await json(
      "org",
      "set-limits",
      "--id",
      "shop",
      "--network",
      "base",
      "--minimum-amount",
      "none",
    );
    expect(after.networks.base.minimumAmount).toBeNull();
    const onBase = ["--id", "shop", "--network", "base"];
    expect(await output("org", "set-limits", ...onBase, "--payers-with-code", "refuse")).toContain("refused");
    expect(await output("org", "set-limits", ...onBase, "--payers-with-code", "accept")).toMatch(
      /any +DAILY_GAS_BUDGET +accepted/,
    );
    const without = await x402("org", "set-limits", ...onBase);
    expect(without.stderr).toContain(
      "--minimum-amount: this one, --daily-gas-budget or --payers-with-code is needed",
    );
  });

  describe("keys", () => {
    let keyId: string;
    let key: string;
    beforeEach(async () => {
      await output("org", "create", "--name", "Shop", "--id", "shop");
      ({ keyId, key } = await json("key", "create", "--org", "shop"));
    });
    const authenticate = async (one: string) =>
      (await createOrganizations({ db: await database.open(), pepper, now: Date.now }).authenticate(one))
        ?.keyId;

    test("are made with the pepper of the others alone, until another is accepted, which ends them", async () => {
      const other = { DATABASE_URL: database.url, API_KEY_PEPPER: randomBytes(32).toString("hex") };
      const refused = await runHere(["key", "create", "--org", "shop"], other);
      expect(refused).toMatchObject({ code: 1, stdout: "" });
      expect(refused.stderr).toContain("API_KEY_PEPPER is not the one that the API keys were made with");
      expect(refused.stderr).toContain("x402-kit key accept-pepper");

      expect(await output("key", "accept-pepper")).toContain("no key stops working");
      const accepted = await runHere(["key", "accept-pepper"], other);
      expect(accepted.stdout).toContain("1 key was made with another one, and works no more");
      expect((await runHere(["key", "create", "--org", "shop"], other)).code).toBe(0);
      expect((await x402("key", "create", "--org", "shop")).code).toBe(1);
    });

    test("are shown once, and by nothing else", async () => {
      const shown = await output("key", "create", "--org", "shop");
      const secret = /x4k_[0-9a-f]+_([0-9a-f]{64})/.exec(shown)?.[1] ?? "none";
      const everything = [
        await output("org", "show", "--id", "shop"),
        await output("org", "show", "--id", "shop", "--json"),
        await output("key", "list", "--org", "shop"),
        await output("key", "list", "--org", "shop", "--json"),
      ].join("");
      expect(everything).not.toContain(secret);
      expect(everything).not.toContain(pepper);
    });

    test("are rotated: the old one works until its time is over", async () => {
      const rotated = await json("key", "rotate", "--id", keyId, "--grace", "1h");
      expect(rotated.replaces.keyId).toBe(keyId);
      expect(Math.round((Date.parse(rotated.replaces.expiresAt) - Date.now()) / 60_000)).toBe(60);
      expect([await authenticate(key), await authenticate(rotated.key)]).toEqual([keyId, rotated.keyId]);
      const listed = await json("key", "list", "--org", "shop");
      expect(listed.map(({ state }: { state: string }) => state).sort()).toEqual(["active", "replaced"]);
    });

    test("are revoked without the pepper", async () => {
      const { code } = await runHere(["key", "revoke", "--id", keyId], { DATABASE_URL: database.url });
      expect(code).toBe(0);
      expect(await authenticate(key)).toBeUndefined();
    });

    test("cannot be named by their secret", async () => {
      const { code, stderr } = await x402("key", "revoke", "--id", key);
      expect(code).toBe(2);
      expect(stderr).toContain("--id: is a whole key; its id is the part in the middle, and no secret");
      expect(stderr).not.toContain(key);
    });
  });

  test("the audit trail names the --actor, or else the user of the machine", async () => {
    await output("org", "create", "--name", "Shop", "--id", "shop");
    await output(
      ...["org", "set-recipient", "--id", "shop", "--network", "base", "--address", recipient],
      ...["--actor", "alice"],
    );
    const { changes } = await json("org", "show", "--id", "shop");
    expect(changes).toMatchObject([
      { number: 1, actor: userInfo().username, action: "organization created" },
      { number: 2, actor: "alice", action: "recipient set", details: { network: "base", to: recipient } },
    ]);
    const shown = await output("org", "show", "--id", "shop");
    expect(shown).toMatch(/2 {2}\S+Z {2}alice {2,}recipient set {2,}network base, to 0x857b/);
  });

  describe("settlements", () => {
    const claims = Array.from({ length: 5 }, (_, index) =>
      paymentOf(index, {
        payer: index % 2,
        organizationId: index < 3 ? "shop" : "bakery",
        amount: 2n ** 60n,
        balance: 2n ** 70n,
      }),
    );
    beforeEach(async () => {
      const ledger = createTestLedger(await database.open(), Date.now);
      await ledger.introduce();
      for (const claim of claims) await ledger.claimAll([claim]);
      await ledger.mine(0, claims.slice(0, 1).map(settled));
      await ledger.mine(
        1,
        claims.slice(1, 2).map((claim) => failed(claim, 'it said "no", and\nthat was all')),
      );
    });

    test("are listed as a table, with what to ask for next", async () => {
      const { code, stdout, stderr } = await x402("settlements", "list", "--limit", "2");
      expect(code).toBe(0);
      expect(stdout.trim().split("\n")).toHaveLength(4);
      const cursor = /--cursor (\S+)/.exec(stderr)?.[1] ?? "";
      const rest = await output("settlements", "list", "--cursor", cursor);
      expect(rest.trim().split("\n")).toHaveLength(2 + 3);
      expect(await output("settlements", "list", "--state", "recovered")).toBe("No settlements.\n");
    });

    test("are filtered", async () => {
      const count = async (...filter: string[]) =>
        (await json("settlements", "list", ...filter)).settlements.length;
      expect(await count()).toBe(5);
      expect(await count("--org", "shop")).toBe(3);
      expect(await count("--org", "shop", "--state", "submitted")).toBe(1);
      expect(await count("--network", "polygon")).toBe(0);
      expect(await count("--payer", claims[1]?.payer ?? "")).toBe(2);
      expect(await count("--from", "2100-01-01")).toBe(0);
      expect(await count("--to", new Date(Date.now() + 60_000).toISOString())).toBe(5);
    });

    test("come as CSV that a spreadsheet reads back", async () => {
      const csv = await output("settlements", "list", "--csv");
      expect(csv.endsWith("\r\n")).toBe(true);
      const [header = [], ...rows] = parseCsv(csv);
      expect(rows).toHaveLength(5);
      const records = rows.map((row) => Object.fromEntries(header.map((name, index) => [name, row[index]])));
      const bad = records.find(({ state }) => state === "failed");
      expect(bad).toMatchObject({
        id: claims[1]?.id,
        value: "1152921504606846976",
        failure: 'it said "no", and\nthat was all',
        blockNumber: "60",
        deliveredAt: "",
      });
      expect(bad?.claimedAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      const sum = records.reduce((total, { value }) => total + BigInt(value ?? 0), 0n);
      expect(sum).toBe(5n * 2n ** 60n);
    });

    test("are shown one by one", async () => {
      const id = claims[0]?.id ?? "";
      expect(await json("settlements", "show", "--id", id)).toMatchObject({
        id,
        state: "settled",
        txNonce: "0",
      });
      expect(await output("settlements", "show", "--id", id)).toContain("state               settled\n");
      const unknown = await x402("settlements", "show", "--id", `0x${"00".repeat(32)}`);
      expect(unknown.code).toBe(4);
      expect(unknown.stderr).toContain("There is no settlement 0x00");
    });
  });

  test("what cannot be done says why, and what to do", async () => {
    const { code, stdout, stderr } = await x402("key", "create", "--org", "nobody");
    expect({ code, stdout }).toEqual({ code: 4, stdout: "" });
    expect(stderr).toBe(
      'x402-kit key create: There is no organization "nobody"\n  npx --no-install x402-kit org list shows those that there are, and npx --no-install x402-kit org create adds one.\n',
    );
  });

  test("everything that is wrong is said at once, and no secret with it", async () => {
    const env = { DATABASE_URL: "mysql://root:hunter2@db/x402", API_KEY_PEPPER: "hunter2" };
    const args = ["key", "create", "--scopes", "verify,admin", "--expires", "soon", "--database", "sqlite:x"];
    const { code, stderr } = await runHere(args, env);
    expect(code).toBe(2);
    expect(stderr).not.toContain("hunter2");
    expect(stderr).toMatchInlineSnapshot(`
      "x402-kit key create: 6 things are wrong
        --database: is read from the variable DATABASE_URL alone
        --org: is needed (for example --org org_0123456789abcdef)
        --scopes: "admin" is not one of verify, settle (for example verify,settle)
        --expires: "soon" is not a time: 2026-11-20, 2026-11-20T10:00:00Z (for example 90d)
        DATABASE_URL: must begin with sqlite: or be a URL that begins with postgres:// (for example postgres://USER:PASSWORD@HOST/DATABASE)
        API_KEY_PEPPER: has 7 characters; it needs 32 or more (for example what \`openssl rand -hex 32\` prints)

      Options: npx --no-install x402-kit key create --help
      "
    `);
  });
});

describe.each(backends)("a database of $name that was not migrated", (backend) => {
  const database = useTestDatabase(backend, { migrated: false });
  const x402 = (...args: string[]) => runHere(args, { DATABASE_URL: database.url, API_KEY_PEPPER: pepper });

  test("is refused by whatever needs it, with what to do", async () => {
    const { code, stderr } = await x402("org", "list");
    expect(code).toBe(1);
    expect(stderr).toContain("x402-kit migrate");
    expect(stderr).not.toContain(encodeURIComponent(postgresPassword));
    expect(stderr).not.toContain(postgresPassword);
  });

  test("is migrated by a command that first tells what it would do, and changes nothing", async () => {
    const dryRun = await x402("migrate", "--dry-run");
    expect(dryRun.code).toBe(0);
    const planned = migrations.map(({ name, summary }) => `would apply  ${name}: ${summary}`);
    expect(dryRun.stdout.split("\n").slice(0, -2)).toEqual(planned);
    if (backend.name === "SQLite") expect(existsSync(database.url.slice("sqlite:".length))).toBe(false);

    expect(JSON.parse((await x402("migrate", "--json")).stdout)).toMatchObject({
      applied: true,
      migrations: migrations.map(({ name }) => ({ name })),
    });
    expect((await x402("migrate")).stdout).toBe("The database is up to date.\n");
    expect((await x402("migrate", "--dry-run")).stdout).toBe("The database is up to date.\n");
    expect((await x402("org", "list")).code).toBe(0);
  });
});

/** Reads RFC 4180. */
function parseCsv(text: string): string[][] {
  const rows: string[][] = [];
  for (let rest = text; rest !== ""; ) {
    const row: string[] = [];
    for (;;) {
      const [field = "", quoted, end] = /^(?:"((?:[^"]|"")*)"|[^",\r\n]*)(,|\r\n)/.exec(rest) ?? [];
      if (end === undefined) throw new Error(`cannot be read: ${rest.slice(0, 80)}`);
      row.push(quoted === undefined ? field.slice(0, -end.length) : quoted.replaceAll('""', '"'));
      rest = rest.slice(field.length);
      if (end !== ",") break;
    }
    rows.push(row);
  }
  return rows;
}
