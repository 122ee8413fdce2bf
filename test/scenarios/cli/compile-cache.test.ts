import { chmod, mkdir, mkdtemp, readdir, rm, stat, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runCli } from "../../support/cli.ts";

/*
 * Node runs the code in its compile cache without comparing it with the source. Another user of the machine who can
 * write there has code run in `x402-kit`, with its keys.
 */

let caches: string;
let temporary: string;
beforeEach(async () => {
  const folder = await mkdtemp(join(tmpdir(), "x402-kit-cache-"));
  await chmod(folder, 0o755);
  [caches, temporary] = [join(folder, "caches"), join(folder, "temporary")];
  await mkdir(caches);
  await mkdir(temporary);
});
afterEach(() => rm(join(caches, ".."), { recursive: true }));

/** As a user has it, who has set no variable for the compile cache. */
const run = (args: readonly string[], more = {}) =>
  runCli(args, { NODE_COMPILE_CACHE: "", TMPDIR: temporary, XDG_CACHE_HOME: caches, ...more });

test.each([
  ["serve"],
  ["deploy"],
  ["recover"],
  ["doctor"],
  ["migrate"],
  ["key create"],
  ["operator show"],
  ["conformance"],
])("%s, which may read keys, uses no compile cache", async (command) => {
  const { code, stdout } = await run([...command.split(" "), "--help"]);
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining(command) });
  expect([await readdir(caches), await readdir(temporary)]).toEqual([[], []]);
});

test("a command without keys uses a cache that nobody else reaches, and none in the shared folder", async () => {
  expect(await run(["reset", "--help"])).toMatchObject({ code: 0 });
  expect((await stat(join(caches, "x402-kit"))).mode & 0o777).toBe(0o700);
  expect(await readdir(join(caches, "x402-kit"))).toHaveLength(1);
  expect(await readdir(temporary)).toEqual([]);
});

test.each([
  ["others may write to", (folder: string) => mkdir(folder).then(() => chmod(folder, 0o777))],
  ["is a link", (folder: string) => symlink(temporary, folder)],
])("a folder that %s is left alone, without a word", async (_, prepare) => {
  await prepare(join(caches, "x402-kit"));
  expect(await run(["reset", "--help"])).toMatchObject({ code: 0, stderr: "" });
  expect([await readdir(join(caches, "x402-kit")), await readdir(temporary)]).toEqual([[], []]);
});

test("a command that may read keys refuses a NODE_COMPILE_CACHE that others can write to", async () => {
  await chmod(temporary, 0o777);
  const { code, stderr } = await run(["serve"], { NODE_COMPILE_CACHE: join(temporary, "cache") });
  expect({ code, stderr: stderr.replace(/from \S+,/, "from FOLDER,") }).toMatchInlineSnapshot(`
    {
      "code": 1,
      "stderr": "x402-kit serve: NODE_COMPILE_CACHE makes Node run code from FOLDER, which other users of this machine can replace
      This command may use private keys: unset NODE_COMPILE_CACHE, or set it to a folder of mode 0700
    ",
    }
  `);
  expect((await run(["serve", "--help"], { NODE_COMPILE_CACHE: join(caches, "cache") })).code).toBe(0);
});
