import { execFile } from "node:child_process";
import { copyFile, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { migrate } from "../../src/database/migrate.ts";
import { openDatabase } from "../../src/database/open-database.ts";
import { createOrganizations } from "../../src/organizations/create-organizations.ts";

/*
 * The package as somebody else has it: built, installed in a project of theirs, and imported by its name.
 */

const run = promisify(execFile);
const repository = fileURLToPath(new URL("../../", import.meta.url));
const pepper = "a pepper for tests, not for shops";

type Manifest = {
  dependencies: Record<string, string>;
  exports: Record<string, string | { types: string; default: string }>;
};

let project: string;
let installed: string;
let manifest: Manifest;
beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), "x402-kit-package-"));
  installed = join(project, "node_modules/x402-facilitator-kit");
  manifest = JSON.parse(await readFile(join(repository, "package.json"), "utf8"));
  await mkdir(installed, { recursive: true });
  await copyFile(join(repository, "package.json"), join(installed, "package.json"));
  for (const name of [...Object.keys(manifest.dependencies), "@types"]) {
    const place = join(project, "node_modules", name);
    await mkdir(join(place, ".."), { recursive: true });
    await symlink(join(repository, "node_modules", name), place);
  }
  const outDir = join(installed, "dist");
  await run("tsc", ["-p", "tsconfig.build.json", "--outDir", outDir], {
    cwd: repository,
    env: { ...process.env, PATH: `${join(repository, "node_modules/.bin")}:${process.env.PATH}` },
  });
});
afterAll(() => rm(project, { recursive: true, force: true }));

/** A program of somebody else. */
const program = `
import { type KeyRecord, KitError, openOrganizations, type Organization } from "x402-facilitator-kit/organizations";

const [, , databaseUrl = ""] = process.argv;
const open = () => openOrganizations({ databaseUrl, pepper: ${JSON.stringify(pepper)}, actor: "sign-up" });
try {
  await using organizations = await open();
  const shop: Organization = await organizations.create({ name: "Their shop" });
  await organizations.setRecipient(shop.id, "base", "0x857b06519E91e3A54538791bDbb0E22373e36b66");
  await organizations.setLimits(shop.id, "base", { minimumAmount: 10_000n });
  const { key } = await organizations.createKey(shop.id, { scopes: ["verify", "settle"] });
  const keys: readonly KeyRecord[] = await organizations.listKeys(shop.id);
  const changes = await organizations.listChanges(shop.id);
  console.log(JSON.stringify({ id: shop.id, key, keys: keys.length, actors: changes.map(({ actor }) => actor) }));
} catch (error) {
  if (!(error instanceof KitError)) throw error;
  console.log(JSON.stringify({ message: error.message, hints: error.hints }));
}
`;

async function runProgram(databaseUrl: string): Promise<Record<string, unknown>> {
  const { stdout } = await run(process.execPath, ["their-program.ts", databaseUrl], { cwd: project });
  return JSON.parse(stdout);
}

test("everything that package.json exports is there, with its types", async () => {
  for (const entry of Object.values(manifest.exports)) {
    for (const path of typeof entry === "string" ? [entry] : Object.values(entry)) {
      expect((await readFile(join(installed, path), "utf8")).length, path).toBeGreaterThan(0);
    }
  }
});

test("a program of somebody else administers organizations by an import, and its types hold", async () => {
  await writeFile(join(project, "package.json"), '{ "type": "module" }');
  await writeFile(join(project, "their-program.ts"), program);
  const compilerOptions = {
    strict: true,
    noEmit: true,
    module: "nodenext",
    target: "esnext",
    types: ["node"],
    skipLibCheck: false,
  };
  const config = { compilerOptions, include: ["their-program.ts"] };
  await writeFile(join(project, "tsconfig.json"), JSON.stringify(config));
  const tsc = join(repository, "node_modules/.bin/tsc");
  await run(tsc, ["-p", "."], { cwd: project });

  const file = join(project, "facilitator.db");
  const url = `sqlite:${file}`;
  expect(await runProgram(url)).toEqual({
    message: `There is no database ${url}`,
    hints: ["x402-kit migrate creates it."],
  });
  const db = await openDatabase({ url });
  await migrate(db);
  const { id, key, keys, actors } = await runProgram(url);
  expect(keys).toBe(1);
  expect(actors).toEqual(["sign-up", "sign-up", "sign-up", "sign-up"]);
  const caller = await createOrganizations({ db, pepper, now: Date.now }).authenticate(String(key));
  expect(caller).toMatchObject({
    organization: { id, name: "Their shop", limits: { base: { minimumAmount: 10_000n } } },
    scopes: ["verify", "settle"],
  });
  await db.destroy();
});
