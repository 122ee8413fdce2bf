import type { Signer } from "../../chain/signing/signer.ts";
import { readEnvironment } from "../../config/environment.ts";
import type { ServeConfig } from "../../config/serve-config.ts";
import { openEndpoints } from "../../deploy/endpoints.ts";
import { explainFailure } from "../../deploy/explain-failure.ts";
import { plural } from "../../deploy/units.ts";
import { ConfigurationError, type ConfigurationProblem } from "../../errors.ts";
import type { Check } from "../../inspection/check.ts";
import { checkNetwork } from "../../inspection/check-network.ts";
import { createLedger } from "../../ledger/create-ledger.ts";
import type { Terminal } from "../kit/command.ts";
import { findRefusedKeys } from "../serve/refused-keys.ts";
import { createSigners, recovererOf } from "../serve/signers.ts";
import { describeDatabase, openAsIs } from "./database.ts";

/** What was looked at, by part: `configuration`, `database`, and each network. */
export type Examination = {
  /** Whether `serve` may be started with this. */
  safe: boolean;
  parts: readonly { name: string; checks: readonly Check[] }[];
};

/** Compares the configuration with the chains and the database it names. Changes nothing. */
export async function examine(
  env: Terminal["env"],
  warnings: readonly ConfigurationProblem[] = [],
): Promise<Examination> {
  let config: ServeConfig;
  try {
    config = readEnvironment(env);
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return conclude([
      {
        name: "configuration",
        checks: [
          ...error.problems.map((problem) => asCheck(problem, "failed")),
          ...warnings.map((problem) => asCheck(problem, "warning")),
        ],
      },
    ]);
  }
  const signers = await createSigners(config.operators);
  const operators = signers.map(({ address }) => address);
  const recoverer = await recovererOf(config);
  const [configuration, state] = await Promise.all([
    checkConfiguration(config, signers, warnings),
    openAsIs(config.databaseUrl),
  ]);
  const now = () => Date.now();
  const db = state.kind === "ready" ? state.db : undefined;
  const ledger = db && createLedger({ db, instanceId: crypto.randomUUID(), now });
  try {
    const networks = await Promise.all(
      config.networks.map(async (network) => ({
        name: network.name,
        checks: await checkNetwork({
          network,
          rpcs: openEndpoints(network),
          operators,
          recoverer,
          nextTxNonce: ledger?.nextTxNonce,
          now,
        }),
      })),
    );
    return conclude([
      { name: "configuration", checks: configuration },
      { name: "database", checks: [describeDatabase(config.databaseUrl, state)] },
      ...networks,
    ]);
  } finally {
    await db?.destroy();
  }
}

function conclude(parts: Examination["parts"]): Examination {
  return { safe: parts.every(({ checks }) => checks.every(({ status }) => status !== "failed")), parts };
}

async function checkConfiguration(
  config: ServeConfig,
  signers: readonly Signer[],
  warningsOfFile: readonly ConfigurationProblem[],
): Promise<readonly Check[]> {
  const { networks, operators, warnings } = config;
  const refused = findRefusedKeys(config);
  const detail = `${plural(networks.length, "network")}, ${plural(signers.length, "operator")}`;
  return [
    { name: "variables", status: "ok", detail },
    ...refused.map((problem) => asCheck(problem, "failed")),
    ...[...warningsOfFile, ...warnings].map((problem) => asCheck(problem, "warning")),
    ...(operators.kind === "remote" ? await Promise.all(signers.map(trySigner(config))) : []),
  ];
}

/**
 * Has a remote signer sign something that cannot do anything: a txNonce that no account ever reaches, no fee, and a
 * contract that takes no money.
 */
function trySigner({ networks }: ServeConfig): (signer: Signer) => Promise<Check> {
  const [network] = networks;
  return async (signer) => {
    if (network === undefined) throw new RangeError("no network is configured");
    const startedAt = performance.now();
    try {
      await signer.signTransaction({
        chainId: network.chainId,
        nonce: Number.MAX_SAFE_INTEGER,
        to: network.facilitatorContract,
        data: "0x",
        gas: 21_000n,
        maxFeePerGas: 0n,
        maxPriorityFeePerGas: 0n,
      });
    } catch (error) {
      return {
        name: "signer",
        status: "failed",
        detail: explainFailure(error),
        advice: "Check OPERATOR_SIGNER_URL, OPERATOR_ADDRESS, and the keys of the remote signer.",
      };
    }
    const ms = Math.round(performance.now() - startedAt);
    return { name: "signer", status: "ok", detail: `signs for ${signer.address} in ${ms} ms` };
  };
}

function asCheck({ name, problem, example }: ConfigurationProblem, status: Check["status"]): Check {
  return { name, status, detail: problem, ...(example && { advice: `For example ${example}` }) };
}
