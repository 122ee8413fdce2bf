import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Session } from "./session.ts";
import { openStateFile } from "./state-file.ts";

test("of two that run with the same file, the later one does not write over what the other has saved", async () => {
  const folder = await mkdtemp(join(tmpdir(), "x402-kit-state-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const path = join(folder, "x402.state");
  const open = () => openStateFile(path);
  const empty: Session = { version: 1, setting: {}, chains: {}, rows: {}, story: [], faults: [] };
  const [one, other] = [open(), open()];
  await one.save({ ...empty, rows: { settlements: [{ id: "one" }] } });
  const before = await readFile(path);
  await expect(other.save(empty)).rejects.toMatchObject({
    message: expect.stringContaining("was written by another process since this one started"),
    hints: [expect.stringContaining(`is in ${path}.new`)],
  });
  expect(await readFile(path)).toEqual(before);

  const next = open();
  expect(next.saved?.rows).toEqual({ settlements: [{ id: "one" }] });
  await next.save(empty);
  expect(open().saved?.rows).toEqual({});
});
