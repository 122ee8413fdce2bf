import { expect, test } from "vitest";
import { type Case, NotRun, type RunOptions, runCases } from "./run-cases.ts";

/** Runs cases whose facts are their names; returns the order in which they ran, and the findings. */
async function run(
  cases: readonly (Pick<Case<string>, "name" | "order"> & { fails?: Error })[],
  options: RunOptions<string> = { atOnce: 1 },
) {
  const ran: string[] = [];
  const findings = await runCases(
    cases.map(({ fails, ...described }) => ({
      ...described,
      ...{ suite: "base", situation: "" },
      async run() {
        if (fails !== undefined) throw fails;
        ran.push(described.name);
        return described.name;
      },
    })),
    (facts) => ({ verdict: facts, text: facts, level: facts === "bad" ? "wrong" : "good" }),
    options,
  );
  return { ran, found: findings.map(({ name, level, notes }) => [name, level, ...notes]) };
}

test("slow cases begin early, those that disturb others run last, and the findings are in the order of the cases", async () => {
  const { ran, found } = await run([
    { name: "alone", order: "alone" },
    { name: "usual" },
    { name: "slow", order: "early" },
  ]);
  expect(ran).toEqual(["slow", "usual", "alone"]);
  expect(found.map(([name]) => name)).toEqual(["alone", "usual", "slow"]);
});

test("the first case runs alone, and decides whether the others do", async () => {
  const afterFirst: RunOptions<string>["afterFirst"] = async ({ level }) =>
    level === "good" ? undefined : "the first is bad";
  const slow = { name: "slow", order: "early" } as const;
  expect((await run([{ name: "first" }, slow], { atOnce: 1, afterFirst })).ran).toEqual(["first", "slow"]);
  expect(await run([{ name: "bad" }, slow], { atOnce: 1, afterFirst })).toEqual({
    ran: ["bad"],
    found: [
      ["bad", "wrong"],
      ["slow", "not_run", "the first is bad"],
    ],
  });
});

test("a case that cannot be run has a finding, and any other error ends the run", async () => {
  const cannot = { name: "a", fails: new NotRun("it sells nothing", "a route", "not_judged") };
  expect((await run([cannot, { name: "b" }])).found).toEqual([
    ["a", "not_judged", "it sells nothing"],
    ["b", "good"],
  ]);
  await expect(run([{ name: "a", fails: new Error("a bug") }])).rejects.toThrow("a bug");
});
