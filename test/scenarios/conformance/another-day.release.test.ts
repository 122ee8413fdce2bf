import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { scenarios } from "../../../src/fixtures/cases/scenarios.ts";
import { findDifferences } from "../../../src/fixtures/engine/answer.ts";
import { createFixtureEngine } from "../../../src/fixtures/index.ts";
import { sendRequest } from "../../../src/judge/conformance/send-request.ts";
import { type CliProcess, startCli } from "../../support/cli.ts";
import { runHere } from "../../support/run-here.ts";

/*
 * A mock whose time stands still on a day that is not today, as when a table is run that was signed long ago.
 */

const clock = "2031-05-06T07:08:09Z";
const rows = scenarios.filter(({ cause, payTo }) => cause.by !== "fault" && payTo.includes("contract"));

let mock: CliProcess;
let url: string;
beforeAll(async () => {
  mock = await startCli(["mock", "--port", "0", "--json", "--clock", clock, "--networks", "base,polygon"]);
  const [line] = await mock.printed(/^.+\n/);
  const description = z.object({ facilitator: z.object({ url: z.string() }) });
  ({ url } = description.parse(JSON.parse(line)).facilitator);
});
afterAll(() => mock?.[Symbol.asyncDispose]());

test(`all ${rows.length} rows signed for that day are answered as the table says, byte for byte as they were signed`, async () => {
  const { environment } = createFixtureEngine({ clock: new Date(clock), networks: ["base", "polygon"] });
  const { origin } = new URL(url);
  const wrong: object[] = [];
  for (const { name, plan } of rows) {
    const { before, request, answer, again } = await plan(environment);
    for (const earlier of before) await sendRequest(origin, earlier);
    const found = [...findDifferences(answer, await sendRequest(origin, request))];
    if (again !== undefined) found.push(...findDifferences(again, await sendRequest(origin, request)));
    if (found.length > 0) wrong.push({ name, found });
  }
  expect(wrong).toEqual([]);
}, 60_000);

test("conformance asks the mock for its time, and passes on that day", async () => {
  const { code, stdout } = await runHere(["conformance", "--url", url, "--json"]);
  const counts = z.object({ passed: z.int(), failed: z.int(), notRun: z.int() }).parse(JSON.parse(stdout));
  // The stranger's refund has no row, and is not run where no channels are offered.
  const notRun = scenarios.length - rows.length + 1;
  expect(counts).toEqual({ passed: rows.length, failed: 0, notRun });
  expect(code).toBe(0);
}, 60_000);
