import { createChain } from "../../chain/create-chain.ts";
import { createLocalSigner } from "../../chain/signing/local-signer.ts";
import type { NetworkConfig } from "../../config/network-config.ts";
import { readRecoverEnvironment } from "../../config/recover-environment.ts";
import { readBytes32, readList } from "../../config/values.ts";
import { variablesOf } from "../../config/variables.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { lowerCase } from "../../ledger/rows.ts";
import { waysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import { createLogger } from "../../observe/log/logger.ts";
import type { Hex } from "../../protocol/hex.ts";
import { createOutcomes } from "../../service/relayer/outcomes.ts";
import { type RecoverResult, recoverNetwork } from "../../service/relayer/recover-network.ts";
import { createRecoverer } from "../../service/relayer/recoverer.ts";
import { createRecovery } from "../../service/relayer/recovery.ts";
import { renderTable } from "../../util/table.ts";
import { defineCommand, flag, jsonFlag, onlyNetworkOptions, option } from "../kit/command.ts";
import { withLedger } from "../kit/database.ts";

export const recover = defineCommand({
  usesEnvFile: true,
  options: {
    ...onlyNetworkOptions,
    confirmed: option(
      "TRANSACTIONS",
      "direct submissions that you have looked up yourself, separated by commas: one RPC endpoint suffices for them",
      {
        read: readList("transaction", (text) => lowerCase(readBytes32(text))),
        example: `0x${"1a".repeat(32)}`,
      },
    ),
    "dry-run": flag("print what would be recovered, and send nothing"),
    json: jsonFlag,
  },
  variables: variablesOf("recover"),

  async run({ network, confirmed = [], "dry-run": dryRun }, terminal) {
    const environment = readRecoverEnvironment(terminal.env, network, { key: !dryRun });
    const { networks, databaseUrl, recovererKey } = environment;
    const interrupted = terminal.takeSignals();
    const ofNetworks = await withLedger(databaseUrl, (ledger) =>
      Promise.all(
        networks.map((config) =>
          recoverOn(config, { ledger, recovererKey, confirmed: new Set(confirmed), interrupted }),
        ),
      ),
    );
    const results = ofNetworks.flat();
    const isGood = results.every(({ outcome }) => outcome === "recovered" || outcome === "would recover");
    return {
      json: { dryRun, payments: results },
      text: describeResults(results, dryRun),
      code: isGood ? 0 : 1,
    };
  },
});

async function recoverOn(
  network: NetworkConfig,
  options: {
    ledger: Ledger;
    recovererKey: Hex | undefined;
    confirmed: ReadonlySet<Hex>;
    interrupted: AbortSignal;
  },
): Promise<RecoverResult[]> {
  const { ledger, recovererKey, confirmed, interrupted } = options;
  const signer = recovererKey === undefined ? undefined : createLocalSigner(recovererKey);
  // Nothing is simulated here, so any account will do.
  const chain = createChain({ network, operator: signer?.address ?? network.facilitatorContract });
  const log = createLogger("silent");
  const outcomes = createOutcomes();
  const collaborators = { chain, ledger, ways: waysToPay, now: Date.now, log };
  const recoverer = signer && createRecoverer({ ...collaborators, signer, outcomes });
  const recovery =
    recoverer && createRecovery({ ...collaborators, ledger: ledger.recoveries, recoverer, confirmed });
  try {
    await recoverer?.start();
    const results: RecoverResult[] = [];
    const work = recoverNetwork({
      ...{ chain, ledger, ways: waysToPay, confirmed, recovery, interrupted },
      recoverer: signer?.address,
    });
    for await (const result of work) results.push(result);
    return results;
  } finally {
    await recovery?.stop();
    chain.close();
  }
}

function describeResults(results: readonly RecoverResult[], dryRun: boolean): string {
  if (results.length === 0) return "Nothing to recover.";
  const table = renderTable(
    ["network", "settlement", "organization", { right: "value" }, "outcome", "transaction"],
    results.map(({ network, settlement, organization, value, outcome, transaction }) => [
      network,
      settlement,
      organization,
      value,
      outcome,
      transaction ?? "-",
    ]),
  );
  const problems = results.flatMap(({ settlement, problem }) =>
    problem === null ? [] : [`${settlement}: ${problem}`],
  );
  return [table, ...problems, ...(dryRun ? ["Nothing was sent."] : [])].join("\n");
}
