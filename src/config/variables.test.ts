import { readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import { describe, expect, test } from "vitest";
import { networkNames } from "../protocol/networks.ts";
import { networkDefaults } from "./known-networks.ts";
import { settleWaitDefaultsMs } from "./serve-config.ts";
import { createConfigurationReader } from "./variable-reader.ts";
import {
  contractVariables,
  describeUnset,
  describeVariable,
  rpcVariableOf,
  variableNames,
  variablesOf,
} from "./variables.ts";

/*
 * The documentation of the variables comes from their table: `vitest run --update` writes .env.example anew.
 */

const repository = new URL("../../", import.meta.url);
const ofOperators = variablesOf("serve", "deploy", "recover");

test(".env.example names every variable", async () => {
  await expect(renderExampleFile()).toMatchFileSnapshot(new URL(".env.example", repository).pathname);
});

test(".env.example, copied as it is, sets nothing", () => {
  expect(parseEnv(readFileSync(new URL(".env.example", repository), "utf8"))).toEqual({});
});

test("every network and every tier has its variable", () => {
  for (const name of [...networkNames.map(rpcVariableOf), ...Object.values(contractVariables)]) {
    expect(variableNames).toContain(name);
  }
});

describe("of every variable", () => {
  test.each(variableNames)("%s, what stands for nothing and the example can be read", (name) => {
    const { read, default: usual, unset, example } = describeVariable(name);
    expect([usual, unset].filter((text) => text !== undefined)).toHaveLength(1);
    if (usual !== undefined) read(usual);
    if (isValue(example)) read(example);
  });
});

describe("the defaults that are written down are those that hold", () => {
  test("confirmations and fee caps", () => {
    const of = (key: "confirmations" | "maxFeePerGas") =>
      Object.fromEntries(networkNames.map((name) => [name, networkDefaults[name][key]]));
    const reader = createConfigurationReader({});
    expect(reader.read("CONFIRMATIONS")).toEqual(of("confirmations"));
    expect(reader.read("MAX_FEE_GWEI")).toEqual(of("maxFeePerGas"));
  });

  test("the wait for a settlement", () => {
    for (const waitMs of Object.values(settleWaitDefaultsMs)) {
      expect(describeUnset("SETTLE_WAIT_MS")).toContain(String(waitMs));
    }
  });
});

/** An example in words is none that could be left standing. */
function isValue(example: string): boolean {
  return example.startsWith("[") || !/[ …]/.test(example);
}

function renderExampleFile(): string {
  const entries = ofOperators.map((name) => {
    const { summary, example } = describeVariable(name);
    const value = !isValue(example) ? "" : example.startsWith("[") ? `'${example}'` : example;
    const hint = isValue(example) ? "" : `For example ${example}. `;
    return `# ${summary}. ${hint}When not set: ${describeUnset(name)}.\n# ${name}=${value}\n`;
  });
  return [
    "# What x402-kit serve, doctor, deploy and recover read from the environment. Copy this to .env in the directory they",
    "# run in; docs/guides/operators.md says more. Keep .env to yourself, and out of version control: it holds keys.",
    "# A secret may stand in a file of its own instead: API_KEY_PEPPER_FILE=/run/secrets/pepper.\n",
    ...entries,
  ].join("\n");
}
