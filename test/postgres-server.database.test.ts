import { cp, mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { startPostgres } from "./support/postgres.ts";
import { findPostgresPrograms } from "./support/postgres-process.ts";

/* The server that the tests use starts wherever the project is, or says at once why it cannot. */

let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "x402-kit-home-"));
});
afterEach(() => vi.unstubAllEnvs());
afterAll(() => rm(home, { recursive: true }));

test("starts from a folder that only its owner can enter, as /root is", async () => {
  const { bin } = await findPostgresPrograms({ folder: home });
  const project = join(home, "project");
  await mkdir(project, { mode: 0o700 });
  await cp(join(bin, ".."), join(project, "native"), { recursive: true, verbatimSymlinks: true });

  const server = await startPostgres({ binaries: join(project, "native/bin") });
  const url = await server.createDatabase();
  expect(await server.query(url, "select 1 as one")).toEqual([{ one: 1 }]);
  await server.stop();
});

test("says in one sentence why there is no server", async () => {
  const temporary = join(home, "temporary");
  await mkdir(temporary);
  vi.stubEnv("TMPDIR", temporary);
  const error = await startPostgres({ binaries: join(home, "nothing/bin") }).catch((error) => error);
  expect(error.message).toMatch(/^Postgres could not be started for this test: .+ failed: .*nothing.*$/);
  // And leaves nothing behind.
  expect(await readdir(temporary)).toEqual([]);
});
