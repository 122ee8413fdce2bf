import { privateKeyToAddress } from "viem/accounts";
import { openEndpoints } from "../../chain/deploy/endpoints.ts";
import { createSigners } from "../../chain/signing/create-signers.ts";
import { readEnvironment } from "../../config/environment.ts";
import type { ServeConfig } from "../../config/serve-config.ts";
import { readContractLists } from "../../config/served-networks.ts";
import { createConfigurationReader, type Environment } from "../../config/variable-reader.ts";
import { variablesOf } from "../../config/variables.ts";
import { createLedger } from "../../ledger/create-ledger.ts";
import type { Database } from "../../ledger/database/database.ts";
import { plural } from "../../protocol/token-units.ts";
import type { Check, CheckStatus } from "../../service/health/check.ts";
import {
  checkConfiguration,
  checkDiskSpace,
  problemAsCheck,
} from "../../service/health/check-configuration.ts";
import {
  checkDatabase,
  checkOpenContracts,
  openAsIs,
  warnOfClock,
  warnOfPlainText,
} from "../../service/health/check-database.ts";
import { checkSettlements } from "../../service/health/check-settlements.ts";
import { checkTokenLogs } from "../../service/health/check-token-logs.ts";
import { inspectNetwork } from "../../service/health/inspect-network.ts";
import { createOrganizations } from "../../service/organizations/create-organizations.ts";
import { wrongPepper } from "../../service/organizations/key-issuing.ts";
import { ConfigurationError, type ConfigurationProblem } from "../../util/errors.ts";
import { escapeControls } from "../../util/text.ts";
import { defineCommand, flag, networkFileOption } from "../kit/command.ts";
import { adviseOnSetUp } from "../kit/files.ts";

export const doctor = defineCommand({
  usesEnvFile: true,
  showsWarnings: true,
  options: { json: flag("print one line of JSON"), ...networkFileOption },
  variables: variablesOf("serve"),

  async run(_values, { env, warnings }) {
    const parts = await examine(env, warnings);
    const safe = parts.every(({ checks }) => checks.every(({ status }) => status !== "failed"));
    return { json: { safe, parts }, text: renderParts(parts, safe), code: safe ? 0 : 1 };
  },
});

/** A checked part: `configuration`, `database`, or a network. Printed unchanged as JSON. */
type Part = { name: string; checks: readonly Check[] };

/** Compares the configuration with the chains and the database it names. Changes nothing. */
async function examine(
  env: Environment,
  fileWarnings: readonly ConfigurationProblem[],
): Promise<readonly Part[]> {
  let config: ServeConfig;
  try {
    config = readEnvironment(env);
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    const failures = error.problems.map((problem) => problemAsCheck(problem, "failed"));
    const warnings = fileWarnings.map((problem) => problemAsCheck(problem, "warning"));
    return [{ name: "configuration", checks: [...failures, ...warnings] }];
  }
  const reader = createConfigurationReader(env);
  const contracts = readContractLists(reader);
  const warnings = [...fileWarnings, ...config.warnings];
  const signers = await createSigners(config.operators);
  const operators = signers.map(({ address }) => address);
  const recoverer = config.recovererKey && privateKeyToAddress(config.recovererKey);
  const sponsor = config.sponsorKey && privateKeyToAddress(config.sponsorKey);
  const [configuration, state, plainText] = await Promise.all([
    checkConfiguration({ ...config, warnings }, signers),
    openAsIs(config.databaseUrl),
    warnOfPlainText(config.databaseUrl),
  ]);
  const database = [
    checkDatabase(config.databaseUrl, state),
    ...(plainText === null ? [] : [plainText]),
    ...checkDiskSpace(config.databaseUrl),
    ...(await checkOpenContracts(config.databaseUrl, { contracts, networks: reader.networks }, state)),
  ];
  const now = () => Date.now();
  const db = state.kind === "ready" ? state.db : undefined;
  const clock = db === undefined ? [] : [warnOfClock(db) ?? []].flat();
  const ledger = db && createLedger({ db, instanceId: crypto.randomUUID() });
  // In a database that does not exist yet, every operator is new.
  const nextTxNonce = state.kind === "missing" ? async () => null : ledger?.claims.nextTxNonce;
  try {
    const networks = config.networks.map(async (network) => {
      const endpoints = openEndpoints(network);
      const accounts = { operators, recoverer, sponsor };
      const [{ checks }, tokenLogs] = await Promise.all([
        inspectNetwork({ network, endpoints, ...accounts, nextTxNonce, refusesUsedOperators: true, now }),
        checkTokenLogs(network, endpoints),
      ]);
      return { name: network.name, checks: [...checks, ...tokenLogs] };
    });
    const setAside = ledger === undefined ? [] : await checkSettlements(ledger, now(), config.networks);
    return [
      { name: "configuration", checks: configuration },
      {
        name: "database",
        checks: [...database, ...(await checkPepper(db, config.apiKeyPepper)), ...setAside, ...clock],
      },
      ...(await Promise.all(networks)),
    ];
  } finally {
    await db?.destroy();
  }
}

/** Checks that the API keys were made with this pepper. */
async function checkPepper(db: Database | undefined, pepper: string): Promise<readonly Check[]> {
  const state = db && (await createOrganizations({ db, pepper, now: Date.now }).checkPepper());
  if (state !== "wrong") return [];
  const { name, problem, advice } = wrongPepper;
  return [{ name: "pepper", status: "failed", detail: `${name} ${problem}`, advice }];
}

const words: Readonly<Record<CheckStatus, string>> = {
  ok: "ok",
  warning: "warn",
  failed: "FAIL",
  skipped: "-",
};

/** One line per check, with advice below those that did not pass. */
function renderParts(parts: readonly Part[], safe: boolean): string {
  const checks = parts.flatMap((part) => part.checks);
  const width = Math.max(...checks.map(({ name }) => name.length));
  const count = (status: CheckStatus) => checks.filter((check) => check.status === status).length;
  const lines = ({ name, status, detail, advice }: Check) => {
    const indent = " ".repeat(2 + 4 + 2 + width + 2);
    const first = `  ${words[status].padEnd(4)}  ${name.padEnd(width)}  ${detail}`;
    return status === "ok" || advice === undefined ? [first] : [first, `${indent}→ ${advice}`];
  };
  // Names and details may contain text from nodes, which must not look like a check of its own.
  const blocks = parts.map(({ name, checks }) =>
    [name, ...checks.flatMap(lines)].map(escapeControls).join("\n"),
  );
  const warnings = count("warning") > 0 ? ` ${plural(count("warning"), "warning")}.` : "";
  const verdict = safe
    ? `All is well: serve may be started.${warnings}`
    : `${count("failed")} of ${plural(checks.length - count("skipped"), "check")} failed: serve would not be safe.${warnings}`;
  // If the configuration cannot be read, nothing else was checked.
  const advice = parts.length === 1 ? [adviseOnSetUp()] : [];
  return [...blocks, [verdict, ...advice].join("\n")].join("\n\n");
}
