import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { connectHarness } from "../../../src/harness/index.ts";
import { startCli } from "../../support/cli.ts";

/* `up --state FILE`: what was paid before a restart is known after it. */

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "x402-kit-state-"));
});
afterAll(() => rm(folder, { recursive: true }));

async function start(...args: readonly string[]) {
  const up = await startCli(["up", "--networks", "base,polygon", "--port", "0", "--no-demo", ...args]);
  const [, url = ""] = await up.printed(/Facilitator {3}(\S+)/);
  await up.printed(/Ready in/);
  return { up, harness: await connectHarness(url, ["base", "polygon"]) };
}

test("chains and ledger go on where they were, and so does a reset", async () => {
  const file = join(folder, "x402.state");
  const first = await start("--state", file);
  const { recipient } = first.harness.organization;
  const { request, receipt } = await first.harness.pay({ network: "base" });
  const unpaid = await first.harness.sign({ network: "base", amount: 7n, validForSeconds: 86_400 });
  await first.harness.networks.polygon.advanceTime(3_600);
  first.up.kill("SIGINT");
  expect((await first.up.ended).code).toBe(0);
  expect(first.up.stdout()).toContain(`${file} is new: a session begins`);
  expect(first.up.stdout()).toMatch(/\nStopping…\nThe session is saved in \S+x402\.state\.\n$/);

  const second = await start("--state", file);
  expect(second.up.stdout()).toContain(`The session goes on from ${file}`);
  const { base, polygon } = second.harness.networks;
  expect(await base.balanceOf(recipient)).toBe(10_000n);
  expect(receipt && (await base.client.getTransactionReceipt({ hash: receipt.transactionHash })).status).toBe(
    "success",
  );
  expect((await second.harness.settle(request)).body.success).toBe(false);
  expect(Number(await polygon.now()) - Date.now() / 1_000).toBeGreaterThan(3_500);
  for (const _ of ["at first", "after a reset"]) {
    expect((await second.harness.settle(unpaid)).body.success).toBe(true);
    expect(await base.balanceOf(recipient)).toBe(10_007n);
    await second.harness.reset();
    expect(await base.balanceOf(recipient)).toBe(10_000n);
  }
  second.up.kill("SIGTERM");
  await second.up.ended;

  await using other = await startCli(["up", "--networks", "base", "--port", "0", "--state", file]);
  expect((await other.ended).code).toBe(1);
  expect(other.stderr()).toContain(`${file} was saved with other settings`);
  expect(other.stderr()).toContain("not started now");
});

test("POST /close saves too; what was damaged since is refused in a sentence", async () => {
  const file = join(folder, "closed.state");
  const first = await start("--open", "--state", file);
  await first.harness.pay({ network: "polygon" });
  const response = await fetch(first.harness.facilitator.url.replace("/v1", "/close"), { method: "POST" });
  expect([response.status, (await first.up.ended).code]).toEqual([200, 0]);
  const second = await start("--open", "--state", file);
  const { recipient } = second.harness.organization;
  expect(await second.harness.networks.polygon.balanceOf(recipient)).toBe(10_000n);
  second.up.kill("SIGTERM");
  expect((await second.up.ended).code).toBe(0);

  const saved = JSON.parse(gunzipSync(await readFile(file)).toString());
  const { base: chain } = saved.chains;
  for (const [damage, said] of [
    [{ version: 2 }, /: \S+ is of format 2; this x402-kit reads 1$/m],
    [
      { chains: { ...saved.chains, base: { ...chain, ahead: 9e15 } } },
      /: \S+ is damaged: its base chain is 9000000000000000 seconds ahead of the clock$/m,
    ],
    [
      { rows: { ...saved.rows, added_later: [{ id: 1 }] } },
      /: The saved ledger does not fit the one of this/,
    ],
    [
      { chains: { ...saved.chains, base: { ...chain, state: chain.state.slice(0, 10_000) } } },
      /: The saved state of the base chain/,
    ],
  ] as const) {
    await writeFile(file, gzipSync(JSON.stringify({ ...saved, ...damage })));
    await using up = await startCli(["up", "--networks", "base,polygon", "--port", "0", "--state", file]);
    expect((await up.ended).code).toBe(1);
    expect(up.stderr()).toMatch(said);
    expect(up.stderr()).not.toContain("unforeseen");
    expect(up.stderr().length).toBeLessThan(500);
  }
});

test("a small file that unpacks to gigabytes is refused before that, wherever in it that is packed", async () => {
  const file = join(folder, "bomb.state");
  const zeros = gzipSync(Buffer.alloc(80 * 1_048_576));
  const chain = { state: `0x${zeros.toString("hex")}`, ahead: 0 };
  const inside = { version: 1, setting: {}, chains: { base: chain }, rows: {} };
  for (const bytes of [zeros, gzipSync(JSON.stringify(inside))]) {
    await writeFile(file, bytes);
    await using up = await startCli(["up", "--networks", "base", "--port", "0", "--state", file]);
    expect((await up.ended).code).toBe(1);
    expect(up.stderr()).toContain(`${file} holds more than 64 MiB when it is unpacked`);
  }
});

test("payments that Ctrl-C cut short are settled by the next run at once, each answered with success once", async () => {
  const file = join(folder, "busy.state");
  const first = await start("--state", file);
  const requests = await Promise.all(
    Array.from({ length: 20 }, () => first.harness.sign({ network: "base", amount: 3n })),
  );
  const cutShort = requests.map((request) => first.harness.settle(request).catch(() => undefined));
  await sleep(20);
  first.up.kill("SIGINT");
  const succeeded = (await Promise.all(cutShort)).map((answer) => answer?.body.success === true);
  expect((await first.up.ended).code).toBe(0);
  const saved = JSON.parse(gunzipSync(await readFile(file)).toString());
  expect(saved.rows.leases).toEqual([]);

  // As an earlier version saved them.
  const ofTheDead = { holder: "a", instance_id: "gone", expires_at: Date.now() + 3_600_000 };
  const leases = saved.rows.settlements.map(({ id }: { id: string }) => ({ id, ...ofTheDead }));
  await writeFile(file, gzipSync(JSON.stringify({ ...saved, rows: { ...saved.rows, leases } })));
  const second = await start("--state", file);
  const answers = await Promise.all(requests.map((request) => second.harness.settle(request)));
  expect(answers.map(({ body }) => body.success)).toEqual(succeeded.map((had) => !had));
  const { base } = second.harness.networks;
  expect(await base.balanceOf(second.harness.organization.recipient)).toBe(60n);
  second.up.kill("SIGTERM");
  await second.up.ended;
});

test("what is no saved state is left alone, and forks and seeds have none", async () => {
  const file = join(folder, "notes.txt");
  await writeFile(file, "mine");
  await using notes = await startCli(["up", "--networks", "base", "--port", "0", "--state", file]);
  expect((await notes.ended).code).toBe(1);
  expect(notes.stderr()).toContain(`${file} is no state that \`up --state\` has saved`);
  await using seeded = await startCli(["up", "--seed", "1", "--state", file]);
  expect((await seeded.ended).code).toBe(2);
  expect(seeded.stderr()).toContain("--state: chains of --seed begin the same each time");
});

test("what cannot be saved at the end is said in a sentence, and is a failure", async () => {
  const gone = await mkdtemp(join(folder, "gone-"));
  const file = join(gone, "x402.state");
  const { up } = await start("--state", file);
  await rm(gone, { recursive: true });
  up.kill("SIGINT");
  expect((await up.ended).code).toBe(4);
  expect(up.stdout()).not.toContain("are saved in");
  expect(up.stderr()).toMatch(
    /^x402-kit up: \S+x402\.state could not be written\n {2}because: ENOENT.*\n {2}Its folder must be there.*\n$/,
  );
  expect((await up.leftovers()).processes).toEqual([]);
});
