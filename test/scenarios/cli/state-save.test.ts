import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readOrganizations } from "../../../src/config/organization-file.ts";
import { harnessDescriptionSchema, originOf } from "../../../src/harness/control/description.ts";
import { pay, postPayment, signPayment } from "../../../src/harness/control/pay.ts";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import { openStateFile } from "../../../src/harness/run/state-file.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { testKeys } from "../../../src/payer/test-keys.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { requestJson } from "../../../src/util/http-client.ts";
import { startCli } from "../../support/cli.ts";
import { runHere } from "../../support/run-here.ts";
import { balanceOf, post, signedRequest, startTestHarness } from "../../support/service.ts";

/* `state save FILE`: what a running `up` has done goes on in another one, from the file alone. */

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "x402-session-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function save(harness: RunningHarness, name: string) {
  const file = join(folder, name);
  const told = await runHere(["state", "save", file, "--from", originOf(harness.description)]);
  return { file, ...told };
}

/** Everything that a session holds, the packed states of its chains unpacked. */
async function contentsOf(file: string): Promise<string> {
  const text = gunzipSync(await readFile(file)).toString();
  const states = Object.values<{ state: string }>(JSON.parse(text).chains);
  return text + states.map(({ state }) => gunzipSync(Buffer.from(state.slice(2), "hex")).toString()).join("");
}

/** Starts another harness that goes on from the file. */
const goOnFrom = (file: string) =>
  startTestHarness({ networks: ["base"], studio: true, state: { ...openStateFile(file), save() {} } });

test("chains, ledger, story, faults and settings of a running up are there in another, of the file alone", async () => {
  await using first = await startTestHarness({
    networks: ["base", "polygon"],
    studio: true,
    payTo: "any",
    strictness: "reference",
    reasons: "reference",
    settleWaitMs: 5_000,
    recipient: testPayers.empty.address,
    claims: [{ x402Version: 2, scheme: "exact", network: "solana:1" }],
    organizations: readOrganizations(
      {
        id: "acme",
        networks: { polygon: { recipient: testPayers.smartWallet.address, minimumAmount: "5" } },
      },
      ["base", "polygon"],
    ),
  });
  const { request } = await signPayment(first.description, { network: "base" });
  const settled = await postPayment(first.description, "settle", request);
  expect(settled.body).toMatchObject({ success: true });
  await pay(first.description, { network: "base", payer: "blacklisted" });
  await first.chains.polygon?.advanceTime(3_600);
  await first.faults.add({ network: "base", kind: "delay", ms: 3, nth: 2, times: 4 });
  const { file, code, stderr, stdout } = await save(first, "whole.state");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toContain(`up --state ${file}`);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  // It goes on as before.
  expect((await pay(first.description, { network: "base" })).settle.body).toMatchObject({ success: true });
  await first.close();

  await using up = await startCli(["up", "--state", file, "--port", "0", "--json"]);
  const description = harnessDescriptionSchema.parse(JSON.parse((await up.printed(/^\{.*\}$/m))[0]));
  expect(description).toMatchObject({
    organization: { recipient: testPayers.empty.address },
    organizations: [{ id: "acme", recipients: { polygon: testPayers.smartWallet.address } }],
    payToPolicy: "any",
  });
  expect(Object.keys(description.networks)).toEqual(["base", "polygon"]);
  const origin = originOf(description);
  const supported = await requestJson(`${origin}/v1/supported`);
  expect(JSON.stringify(supported.body)).toContain("solana:1");
  const chains = await requestJson(`${origin}/harness/chains`);
  expect(chains.body).toMatchObject([{ balances: { recipient: "10000" } }, { network: "polygon" }]);
  const [, { time }] = chains.body as [object, { time: number }];
  expect(time - Date.now() / 1_000).toBeGreaterThan(3_500);

  const faults = await requestJson(`${origin}/harness/faults/list`, { method: "POST", body: {} });
  expect(faults.body).toMatchObject({ faults: [{ kind: "delay", ms: 3, network: "base" }] });
  const id = settled.headers.location?.split("/").at(-1) ?? "no location";
  const logs = await runHere(["logs", "--url", origin, "--json"]);
  const lines = logs.stdout.trim().split("\n");
  expect(lines.map((line) => JSON.parse(line).outcome).sort()).toEqual(["invalid", "invalid", "settled"]);
  expect(logs.stdout).toContain("blacklisted");
  const why = await runHere(["why", id, "--url", origin]);
  expect([why.code, why.stdout]).toEqual([0, expect.stringMatching(/settled[\s\S]*ledger +delivered/)]);
  let streamed = "";
  for await (const chunk of (await fetch(`${origin}/events`)).body ?? []) {
    streamed += Buffer.from(chunk).toString();
    if (streamed.includes(id)) break;
  }

  // A payment of then is paid once and for all.
  const again = await requestJson(`${origin}/v1/settle`, {
    method: "POST",
    headers: { authorization: description.organization.apiKey },
    body: request,
  });
  expect(again.body).toMatchObject({ success: false, errorReason: "invalid_exact_evm_nonce_already_used" });
  expect((await runHere(["logs", "--url", origin, "--json"])).stdout.trim().split("\n")).toHaveLength(3);

  // And a session of a session has it all.
  const second = join(folder, "second.state");
  expect((await runHere(["state", "save", second, "--from", origin])).code).toBe(0);
  const story = JSON.parse(gunzipSync(await readFile(second)).toString()).story;
  expect(story).toHaveLength(2);
  up.kill("SIGTERM");
  expect((await up.ended).code).toBe(0);
});

test("a session that is saved while payments settle is of one moment: each is paid once, here and there", async () => {
  await using first = await startTestHarness({ networks: ["base"], studio: true });
  const bodies = await Promise.all(Array.from({ length: 30 }, () => signedRequest(first, { amount: 7n })));
  const saving: ReturnType<typeof save>[] = [];
  const settling = bodies.map(async (body, index) => {
    const answer = await post(first, "settle", body);
    if (index % 10 === 3) saving.push(save(first, `busy-${index}.state`));
    return answer;
  });
  const answers = await Promise.all(settling);
  expect(answers.map(({ body }) => body.success)).toEqual(Array(30).fill(true));
  for (const { file, code } of await Promise.all(saving)) {
    expect(code).toBe(0);
    await using second = await goOnFrom(file);
    const { recipient } = second.description.organization;
    for (const body of bodies) {
      const { status, body: answer } = await post(second, "settle", body);
      expect([status, answer.success || answer.errorReason]).toSatisfy(([code, said]) =>
        code === 200 ? said === true || said === "invalid_transaction_state" : false,
      );
    }
    expect(await balanceOf(second, recipient)).toBe(30n * 7n);
  }
});

test("held blocks stay held, and the operator's money comes back with the end of its fault", async () => {
  await using first = await startTestHarness({ networks: ["base"], studio: true, settleWaitMs: 300 });
  await first.faults.add({ network: "base", kind: "hold-blocks" });
  const body = await signedRequest(first);
  expect((await post(first, "settle", body)).status).toBe(503);
  const { id } = await first.faults.add({ network: "base", kind: "empty-operator" });
  const { file } = await save(first, "held.state");
  await first.faults.remove(id);

  await using second = await goOnFrom(file);
  const kinds = (await second.faults.list()).map(({ kind }) => kind);
  expect(kinds).toEqual(["hold-blocks", "empty-operator"]);
  const { recipient } = second.description.organization;
  expect(await balanceOf(second, recipient)).toBe(0n);
  const { node } = second.chains.base ?? {};
  const money = () => node?.request("eth_getBalance", harnessAccounts.operator.address, "latest");
  expect(await money()).toBe("0x0");
  await second.faults.clear();
  expect(await money()).not.toBe("0x0");
  expect((await post(second, "settle", body)).body.success).toBe(true);
  expect(await balanceOf(second, recipient)).toBe(10_000n);
});

test("the file holds no key, and says whose signatures it holds", async () => {
  await using harness = await startTestHarness({
    networks: ["base"],
    studio: true,
    organizations: readOrganizations({ id: "acme", recipient: testPayers.empty.address }, ["base"]),
  });
  const wallet = `0x${randomBytes(32).toString("hex")}` as const;
  const { request, payment } = await signPayment(harness.description, { network: "base", payer: wallet });
  await harness.chains.base?.fund(payment.payer, 10_000n);
  expect((await postPayment(harness.description, "settle", request)).body).toMatchObject({ success: true });
  await pay(harness.description, { network: "base" });
  const { file, stderr } = await save(harness, "keys.state");
  expect(stderr.toLowerCase()).toContain(payment.payer.toLowerCase());
  expect(stderr).not.toContain(testPayers.funded.address);

  const contents = (await contentsOf(file)).toLowerCase();
  const keys = [
    wallet,
    ...Object.values({ ...testPayers, ...harnessAccounts }).flatMap((account) =>
      "privateKey" in account ? [account.privateKey] : [],
    ),
    ...Object.values(testKeys).map(({ apiKey }) => apiKey),
    ...(harness.description.organizations ?? []).map(({ apiKey }) => apiKey),
  ];
  expect(keys.length).toBeGreaterThan(15);
  for (const key of keys) expect(contents).not.toContain(key.replace("0x", "").toLowerCase());
});

test("it is given to this machine alone, and not where chains are forks or have a seed", async () => {
  await using seeded = await startTestHarness({ networks: ["base"], studio: true, seed: 1 });
  const { code, stderr } = await save(seeded, "seeded.state");
  expect([code, stderr]).toEqual([1, expect.stringContaining("with --seed or --fork cannot be saved")]);
  const foreign = await requestJson(`${originOf(seeded.description)}/harness/state`, {
    method: "POST",
    body: {},
    headers: { origin: "https://evil.example" },
  });
  expect(foreign.status).toBe(403);
});

test.each<[string, (file: string, whole: Record<string, unknown>) => Promise<unknown>, RegExp, number?]>([
  [
    "of five million values, in some kilobytes",
    (file) => writeFile(file, gzipSync(`{"version":1,"rows":{"a":[${"{},".repeat(2_500_001)}{}]}}`)),
    /holds more than 5000000 values/,
  ],
  [
    "of millions of rows that are none",
    (file) =>
      writeFile(
        file,
        gzipSync(`{"version":1,"setting":{},"chains":{},"rows":{"a":[${"0,".repeat(4_900_000)}0]}}`),
      ),
    /is no state/,
  ],
  [
    "of millions of settings that are none",
    (file) =>
      writeFile(file, gzipSync(`{"version":1,"setting":{${numbers(1_900_000)}},"chains":{},"rows":{}}`)),
    /is no state/,
  ],
  [
    "that is longer than any",
    async (file) => {
      await writeFile(file, "");
      await truncate(file, 501 * 1_048_576);
    },
    /holds more than 500 MiB/,
  ],
  [
    "with more payments than are ever told",
    (file, whole) => {
      const { story } = whole as { story: unknown[] };
      return writeFile(file, gzipSync(JSON.stringify({ ...whole, story: Array(501).fill(story[0]) })));
    },
    /is no state/,
  ],
  [
    "with a fault that there is none of",
    (file, whole) =>
      writeFile(
        file,
        gzipSync(
          JSON.stringify({ ...whole, faults: [{ id: "1", fired: 0, kind: "flood", network: "base" }] }),
        ),
      ),
    /"flood" is not one of/,
    2,
  ],
  [
    "with an organization that cannot be read",
    (file, whole) => {
      const { settings } = whole as { settings: object };
      return writeFile(
        file,
        gzipSync(JSON.stringify({ ...whole, settings: { ...settings, organizations: [{ id: "../x" }] } })),
      );
    },
    /settings of the saved session cannot be read/,
  ],
])("a file %s is refused in a sentence", async (_, write, said, exit = 1) => {
  const file = join(folder, "hostile.state");
  await write(file, await wholeSession());
  const { code, stderr } = await runHere(["up", "--state", file, "--port", "0"]);
  expect(code).toBe(exit);
  expect(stderr).toMatch(said);
  expect(stderr.length).toBeLessThan(1_000);
});

test("a device, which never ends, is no session", async () => {
  const { code, stderr } = await runHere(["up", "--state", "/dev/zero", "--port", "0"]);
  expect([code, stderr]).toEqual([1, expect.stringContaining("is no state")]);
});

/** Members that are to be texts. */
function numbers(count: number): string {
  return Array.from({ length: count }, (_, index) => `"${index}":0`).join(",");
}

let whole: Promise<Record<string, unknown>> | undefined;

/** A session with one payment, as JSON. */
function wholeSession(): Promise<Record<string, unknown>> {
  whole ??= (async () => {
    await using harness = await startTestHarness({ networks: ["base"], studio: true });
    await pay(harness.description, { network: "base" });
    const { file } = await save(harness, "one.state");
    return JSON.parse(gunzipSync(await readFile(file)).toString());
  })();
  return whole;
}
