import { readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import { describe, expect, test } from "vitest";
import { networkNames } from "../protocol/networks.ts";
import { readAssets } from "./assets.ts";
import { networkDefaults } from "./network-defaults.ts";
import { readPerNetwork } from "./per-network.ts";
import { readGwei } from "./values.ts";
import { contractVariables, rpcVariables, type Variable, type VariableName, variables } from "./variables.ts";

/*
 * What is written about the variables, and that it is so. After a change of the table, `vitest run --update` writes
 * .env.example anew; the rows for the guide are in the message of the test that fails.
 */

const repository = new URL("../../", import.meta.url);

function otherwise(name: VariableName): string {
  return variables.find((variable) => variable.name === name)?.otherwise ?? "";
}

test(".env.example names every variable", async () => {
  await expect(renderExampleFile(variables)).toMatchFileSnapshot(
    new URL(".env.example", repository).pathname,
  );
});

test(".env.example, copied as it is, sets nothing", () => {
  expect(parseEnv(readFileSync(new URL(".env.example", repository), "utf8"))).toEqual({});
});

test("the guide for operators has the same table", () => {
  const guide = readFileSync(new URL("docs/guides/operators.md", repository), "utf8");
  expect(guide).toContain(renderRows(variables));
});

test("every network and every tier has its variable", () => {
  const names: readonly string[] = variables.map(({ name }) => name);
  for (const name of networkNames) expect(names).toContain(rpcVariables[name]);
  for (const name of Object.values(contractVariables)) expect(names).toContain(name);
});

describe("the defaults that are written down are those that hold", () => {
  test("confirmations", () => {
    expect(readPerNetwork(Number)(otherwise("CONFIRMATIONS"))).toEqual(
      Object.fromEntries(networkNames.map((name) => [name, networkDefaults[name].confirmations])),
    );
  });

  test("fee caps", () => {
    expect(readPerNetwork(readGwei)(otherwise("MAX_FEE_GWEI"))).toEqual(
      Object.fromEntries(networkNames.map((name) => [name, networkDefaults[name].maxFeePerGas])),
    );
  });
});

test("the example of further tokens can be read", () => {
  const example = variables.find(({ name }) => name === "ASSETS")?.example ?? "";
  expect(readAssets(example)).toMatchObject([{ network: "base", name: "EURC" }]);
});

function renderExampleFile(table: readonly Variable[]): string {
  const entries = table.map(({ name, summary, otherwise, example }) => {
    // An example in words is none that could be left standing.
    const isValue = example.startsWith("[") || !example.includes(" ");
    const value = !isValue ? "" : example.startsWith("[") ? `'${example}'` : example;
    return `# ${summary}. ${isValue ? "" : `For example ${example}. `}When not set: ${otherwise}.\n# ${name}=${value}\n`;
  });
  return [
    "# What x402-kit serve, doctor and deploy read from the environment. Copy this to .env in the directory they run in;",
    "# docs/guides/operators.md says more. Keep .env to yourself, and out of version control: it holds keys.\n",
    ...entries,
  ].join("\n");
}

function renderRows(table: readonly Variable[]): string {
  const rows = table.map(
    ({ name, summary, otherwise, example }) =>
      `| \`${name}\` | ${summary} | ${otherwise} | ${spell(example)} |`,
  );
  return ["| variable | what it is | when it is not set | example |", "|---|---|---|---|", ...rows].join(
    "\n",
  );
}

function spell(example: string): string {
  return example.includes(" ") ? example : `\`${example}\``;
}
