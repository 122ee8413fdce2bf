import type { Chain } from "../../chain/chain.ts";
import { createChain } from "../../chain/create-chain.ts";
import { createLocalSigner } from "../../chain/signing/local-signer.ts";
import { balanceOf as balanceView } from "../../chain/views.ts";
import { chainVariables, readRecoverEnvironment } from "../../config/environment.ts";
import type { NetworkConfig } from "../../config/serve-config.ts";
import { readBytes32, readList, readMoment } from "../../config/values.ts";
import { variablesOf } from "../../config/variables.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { lowerCase } from "../../ledger/rows.ts";
import { amount, askFacts } from "../../methods/on-chain/state-facts.ts";
import { findStrandedTransfers, type StrandedTransfer } from "../../methods/on-chain/stranded-transfers.ts";
import { waysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import { createLogger } from "../../observe/log/logger.ts";
import type { Hex } from "../../protocol/hex.ts";
import { dayMs } from "../../protocol/moments.ts";
import type { Asset, NetworkName } from "../../protocol/networks.ts";
import { settlementId } from "../../protocol/signed-payment.ts";
import { type RecoverResult, recoverNetwork } from "../../service/relayer/recover-network.ts";
import { createRecoverer } from "../../service/relayer/recoverer.ts";
import { createRecovery } from "../../service/relayer/recovery.ts";
import { createOutcomes } from "../../service/relayer/slot.ts";
import { self } from "../../util/self-command.ts";
import { renderTable } from "../../util/text.ts";
import { defineCommand, flag, onlyNetworkOptions, option } from "../kit/command.ts";
import { withLedger } from "../kit/with-database.ts";

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
  },
  variables: variablesOf("recover"),

  async run({ network, confirmed = [], "dry-run": dryRun }, terminal) {
    const environment = readRecoverEnvironment(terminal.env, network, { key: !dryRun });
    const { networks, databaseUrl, recovererKey } = environment;
    const interrupted = terminal.takeSignals();
    const ofNetworks = await withLedger(databaseUrl, (ledger, now) =>
      Promise.all(
        networks.map((config) =>
          recoverOn(config, { ledger, now, recovererKey, confirmed: new Set(confirmed), interrupted }),
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
    now: () => number;
    recovererKey: Hex | undefined;
    confirmed: ReadonlySet<Hex>;
    interrupted: AbortSignal;
  },
): Promise<RecoverResult[]> {
  const { ledger, now, recovererKey, confirmed, interrupted } = options;
  const signer = recovererKey === undefined ? undefined : createLocalSigner(recovererKey);
  // Nothing is simulated here, so any account will do.
  const chain = createChain({ network, operator: signer?.address ?? network.facilitatorContract });
  const log = createLogger("silent");
  const outcomes = createOutcomes();
  const collaborators = { chain, ledger, ways: waysToPay, now, log };
  const recoverer = signer && createRecoverer({ ...collaborators, signer, outcomes });
  const recovery =
    recoverer && createRecovery({ ...collaborators, ledger: ledger.recoveries, recoverer, confirmed });
  try {
    await recoverer?.start();
    const results: RecoverResult[] = [];
    const work = recoverNetwork({
      chain,
      ledger,
      ways: waysToPay,
      confirmed,
      now,
      recovery,
      interrupted,
      recoverer: signer?.address,
    });
    for await (const result of work) results.push(result);
    return results;
  } finally {
    await recovery?.stop();
    chain.close();
  }
}

/** One line per settlement, with its outcome. */
export function renderOutcomes(
  results: readonly {
    network: string;
    settlement: string;
    organization: string;
    value: string;
    outcome: string;
    transaction: string | null;
  }[],
): string {
  return renderTable(
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
}

function describeResults(results: readonly RecoverResult[], dryRun: boolean): string {
  if (results.length === 0) return "Nothing to recover.";
  const table = renderOutcomes(results);
  const problems = results.flatMap(({ settlement, problem }) =>
    problem === null ? [] : [`${settlement}: ${problem}`],
  );
  return [table, ...problems, ...(dryRun ? ["Nothing was sent."] : [])].join("\n");
}

const usualDays = 7;
/** The stranded value of one asset in the facilitator contract, as JSON; amounts are decimal strings in smallest units. */
type StrandedAsset = {
  network: NetworkName;
  asset: string;
  contract: string;
  balance: string;
  /** Not claimed by any organization; the admin can rescue it. */
  stranded: { value: string; from: string; transaction: string; since: string; reason: string }[];
  /** Claimed by an organization; `x402-kit recover` pays it out. */
  recoverable: string;
};

export const stranded = defineCommand({
  usesEnvFile: true,
  options: {
    ...onlyNetworkOptions,
    since: option("TIME", `look at transfers from this time on (default ${usualDays} days ago)`, {
      read: readMoment,
      example: "2026-11-01",
    }),
  },
  variables: chainVariables,

  async run({ network, since = Date.now() - usualDays * dayMs }, terminal) {
    const { networks, databaseUrl } = readRecoverEnvironment(terminal.env, network, { key: false });
    const ofNetworks = await withLedger(databaseUrl, (ledger) =>
      Promise.all(networks.map((config) => findOn(config, ledger, since))),
    );
    const found = ofNetworks.flat();
    return { json: { assets: found }, text: describeFound(found, since) };
  },
});

async function findOn(network: NetworkConfig, ledger: Ledger, since: number): Promise<StrandedAsset[]> {
  const chain = createChain({ network, operator: network.facilitatorContract });
  try {
    const found: StrandedAsset[] = [];
    for (const asset of network.assets) found.push(await findAsset(chain, ledger, asset, since));
    return found;
  } finally {
    chain.close();
  }
}

async function findAsset(chain: Chain, ledger: Ledger, asset: Asset, since: number): Promise<StrandedAsset> {
  const { name, chainId, facilitatorContract, blockTimeMs } = chain.network;
  const balance = await balanceOf(chain, asset);
  const found: StrandedAsset = {
    network: name,
    asset: asset.address,
    contract: facilitatorContract,
    balance: balance.toString(),
    stranded: [],
    recoverable: "0",
  };
  // Settling leaves nothing behind, so the whole balance is stranded.
  if (balance === 0n) return found;

  const head = await chain.head();
  const headMs = Number(head.timestamp) * 1000;
  const blocksBack = BigInt(Math.max(0, Math.ceil((headMs - since) / blockTimeMs)));
  const fromBlock = blocksBack < head.number ? head.number - blocksBack : 0n;
  const deep = head.number - BigInt(chain.network.confirmations) + 1n;
  let recoverable = 0n;
  const transfers = await findStrandedTransfers(chain, asset.address, fromBlock, deep);
  for (const transfer of transfers) {
    const reason = await explain(transfer);
    if (reason === "recoverable") {
      recoverable += transfer.value;
      continue;
    }
    found.stranded.push({
      value: transfer.value.toString(),
      from: transfer.from,
      transaction: transfer.transactionHash,
      // The block's own time is not read; an estimate from the network's block time is right to the minute.
      since: new Date(headMs - Number(head.number - transfer.blockNumber) * blockTimeMs).toISOString(),
      reason,
    });
  }
  return { ...found, recoverable: recoverable.toString() };

  async function explain({ from, payment, blockNumber, value }: StrandedTransfer): Promise<string> {
    if (payment === undefined) return "sent without an authorization";
    const id = settlementId(chainId, payment.nonceSpace, from, payment.nonce);
    const settlement = await ledger.claims.find(id);
    if (settlement === null) return "no organization claimed it";
    if (settlement.amount !== value) return `an organization claimed ${settlement.amount} instead`;
    if (settlement.claimedBlock >= blockNumber) return `claimed by ${settlement.organizationId} afterwards`;
    return "recoverable";
  }
}

/** The facilitator contract's balance of an asset. */
async function balanceOf({ reader, network }: Chain, { address }: Asset): Promise<bigint> {
  const held = amount(balanceView(address, network.facilitatorContract));
  return (await askFacts(reader, { held }, undefined)).held;
}

function describeFound(found: readonly StrandedAsset[], since: number): string {
  const lines: string[] = [];
  const rows = found.flatMap(({ network, stranded: transfers }) =>
    transfers.map((transfer) => ({ network, ...transfer })),
  );
  if (rows.length > 0) {
    lines.push(
      renderTable(
        ["network", { right: "value" }, "from", "since (about)", "transaction", "why"],
        rows.map((row) => [row.network, row.value, row.from, row.since, row.transaction, row.reason]),
      ),
      "",
      "The admin of the contract can send it to its owner: announceRescue(token, recipient, value) on the",
      "contract, and, from 2 days later on and within 14 days, executeRescue with the same arguments.",
    );
  }
  for (const { network, asset, contract, balance, recoverable, stranded: transfers } of found) {
    const listed = transfers.reduce((sum, { value }) => sum + BigInt(value), BigInt(recoverable));
    if (balance !== "0") lines.push(`${network}: ${balance} of ${asset} lie in ${contract}.`);
    if (recoverable !== "0") {
      lines.push(`${network}: ${recoverable} of it are claimed: ${self} recover. Do not rescue these.`);
    }
    if (listed < BigInt(balance)) {
      const time = new Date(since).toISOString();
      lines.push(
        `${network}: the rest came before ${time}, or only just now; look further back with --since.`,
      );
    }
    if (listed > BigInt(balance)) {
      lines.push(`${network}: more came than lies there now: some of what is listed was rescued before.`);
    }
  }
  return lines.length === 0 ? "Nothing is stranded." : lines.join("\n");
}
