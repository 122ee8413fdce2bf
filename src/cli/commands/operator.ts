import { createChain } from "../../chain/create-chain.ts";
import { chooseEndpoint } from "../../chain/deploy/endpoints.ts";
import { chainVariables, readRecoverEnvironment } from "../../config/environment.ts";
import type { NetworkConfig } from "../../config/serve-config.ts";
import { createConfigurationReader, type Environment } from "../../config/variable-reader.ts";
import { rpcVariableOf } from "../../config/variables.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Address } from "../../protocol/hex.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import { KitError, UndeterminedError } from "../../util/errors.ts";
import { renderTable } from "../../util/text.ts";
import {
  actorOption,
  defineCommand,
  networkOptions,
  requiredAddress,
  requireNetwork,
} from "../kit/command.ts";
import { actorOr, usesDatabase, withLedger } from "../kit/with-database.ts";

export const operatorShow = defineCommand({
  ...usesDatabase,
  variables: chainVariables,
  options: {
    ...networkOptions,
    operator: requiredAddress("the operator's account"),
  },

  run: ({ network, operator }, { env, networks }, { databaseUrl }) =>
    withLedger(databaseUrl, async (ledger) => {
      // Reads the chain before the ledger: a running service records each transaction in the ledger before it sends it.
      const known = await readKnownTransactions(env, network, operator);
      const { chainId } = requireNetwork(networks, network);
      const next = await ledger.claims.nextTxNonce(chainId, operator);
      const changes = (await ledger.claims.operatorChanges(chainId, operator)).map((change) => ({
        ...change,
        at: new Date(change.at).toISOString(),
      }));
      const missing = known === null || next === null ? null : Math.max(0, next - known);
      const lines = [
        next === null
          ? `The database knows no operator ${operator} on ${network}.`
          : `${operator} goes on at txNonce ${next} on ${network}.`,
      ];
      if (missing !== null && missing > 0) {
        lines.push(
          `The node knows only its transactions below txNonce ${known}: ${missing} are missing, and serve sends them again.`,
        );
      }
      if (changes.length > 0) {
        const rows = changes.map(({ at, actor, from, to }) => [at, actor, String(from), String(to)]);
        lines.push(renderTable(["time", "who", { right: "from" }, { right: "to" }], rows));
      }
      return { json: { network, operator, nextTxNonce: next, missing, changes }, text: lines.join("\n") };
    }),
});

/**
 * How many transactions of an operator a node knows, including those in its pool; null if no RPC URL is set for the
 * network, or none answers.
 */
async function readKnownTransactions(
  env: Environment,
  network: NetworkName,
  operator: Address,
): Promise<number | null> {
  if (!createConfigurationReader(env).isSet(rpcVariableOf(network))) return null;
  const [config] = readRecoverEnvironment(env, network, { key: false }).networks;
  if (config === undefined) return null;
  const chain = createChain({ network: config, operator });
  try {
    const counts = [chain.transactionCount(operator), chain.pendingTransactionCount(operator)];
    return Math.max(...(await Promise.all(counts)));
  } catch (error) {
    if (error instanceof UndeterminedError) return null;
    throw error;
  } finally {
    chain.close();
  }
}

type Accepted = {
  /** The ledger's next txNonce, before and after. */
  from: number;
  to: number;
  /** Unfinished settlements with txNonces that the chain has passed. `serve` resends those that were not mined. */
  passed: number;
};

export const operatorAcceptTxNonce = defineCommand({
  usesEnvFile: true,
  variables: chainVariables,
  options: {
    ...networkOptions,
    operator: requiredAddress("the account; nothing else may send with its key any more"),
    actor: actorOption,
  },

  async run({ network, operator, actor }, { env }) {
    const { networks, databaseUrl } = readRecoverEnvironment(env, network, { key: false });
    const [config] = networks;
    if (config === undefined) throw new KitError(`${network} is not configured`);
    const accepted = await withLedger(databaseUrl, (ledger) =>
      accept(config, ledger, operator, actorOr(actor)),
    );
    return { json: { network, operator, ...accepted }, text: describe(network, operator, accepted) };
  },
});

/** @throws KitError if there is nothing to continue from, UndeterminedError if the chain does not answer */
async function accept(
  network: NetworkConfig,
  ledger: Ledger,
  operator: Address,
  actor: string,
): Promise<Accepted> {
  const { chainId, name } = network;
  const chain = createChain({ network, operator });
  try {
    await chooseEndpoint(network);
    // Reads the chain before the ledger: a running service records each transaction in the ledger before it sends it.
    const [mined, pending] = await Promise.all([
      chain.transactionCount(operator),
      chain.pendingTransactionCount(operator),
    ]);
    const next = await ledger.claims.nextTxNonce(chainId, operator);
    if (next === null && Math.max(mined, pending) === 0) {
      throw new KitError(
        `The database knows no operator ${operator} on ${name}: there is nothing to accept`,
        { code: "not-found" },
      );
    }
    const from = next ?? 0;
    if (pending > Math.max(mined, from)) {
      throw new KitError(
        `${operator} has transactions under way on ${name} that this database does not know`,
        {
          hints: ["Stop the program that sends them, and wait until they are mined."],
        },
      );
    }
    const open = await ledger.claims.openAttempts(chainId, operator);
    const passed = new Set(
      open
        .filter(({ attempt }) => attempt.txNonce < mined)
        .flatMap(({ settlements }) => settlements.map(({ id }) => id)),
    );
    if (next === null) await ledger.claims.introduceOperator(chainId, operator, from);
    const moved = await ledger.claims.acceptTxNonce({ chainId, operator, txNonce: mined }, actor);
    return { from, to: moved ? mined : from, passed: passed.size };
  } finally {
    chain.close();
  }
}

function describe(network: string, operator: Address, { from, to, passed }: Accepted): string {
  if (from === to) return `Nothing to accept: ${operator} goes on at ${to} on ${network}, as the chain does.`;
  const lines = [`${operator} goes on at ${to} on ${network}; the database was at ${from}.`];
  if (passed > 0) {
    lines.push(
      `${passed} unfinished settlements have txNonces below that: serve finds out which of them were mined, and sends the others again.`,
    );
  }
  return lines.join("\n");
}
