import { createChain } from "../../chain/create-chain.ts";
import { chainVariables, readRecoverEnvironment } from "../../config/environment.ts";
import type { NetworkConfig } from "../../config/serve-config.ts";
import { readBytes32 } from "../../config/values.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { isSetAside, type Settlement } from "../../ledger/settlement.ts";
import { waysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import type { Hex } from "../../protocol/hex.ts";
import { type Reexamined, reexamine } from "../../service/relayer/reexamine.ts";
import { KitError } from "../../util/errors.ts";
import { defineCommand, flag, onlyNetworkOptions, option } from "../kit/command.ts";
import { withLedger } from "../kit/with-database.ts";
import { renderOutcomes } from "./recover.ts";

const pageSize = 1_000;

export const settlementsReexamine = defineCommand({
  usesEnvFile: true,
  options: {
    ...onlyNetworkOptions,
    id: option("ID", "one undecided settlement (default all that are set aside)", {
      read: readBytes32,
      example: `0x${"0123456789abcdef".repeat(4)}`,
    }),
    "dry-run": flag("say what the chain shows, and change nothing"),
  },
  variables: chainVariables,
  exitCodes: "0 if none stays undecided, else 1",

  async run({ network, id, "dry-run": dryRun }, terminal) {
    const { networks, databaseUrl } = readRecoverEnvironment(terminal.env, network, { key: false });
    const results = await withLedger(databaseUrl, async (ledger, now) => {
      const chosen = id === undefined ? undefined : [await findUndecided(ledger, id, networks)];
      const ofNetworks = await Promise.all(
        networks.map(async (config) => {
          const some =
            chosen?.filter((settlement) => settlement.network === config.name) ??
            (await listSetAside(ledger, config, now()));
          const chain = createChain({ network: config, operator: config.facilitatorContract });
          try {
            return await reexamine({ chain, ledger, ways: waysToPay, now, dryRun }, some);
          } finally {
            chain.close();
          }
        }),
      );
      return ofNetworks.flat();
    });
    return {
      json: { dryRun, settlements: results },
      text: describeResults(results, dryRun),
      code: results.some(({ outcome }) => outcome === "undecided") ? 1 : 0,
    };
  },
});

async function findUndecided(
  ledger: Ledger,
  id: Hex,
  networks: readonly NetworkConfig[],
): Promise<Settlement> {
  const settlement = await ledger.claims.find(id);
  if (settlement === null) throw new KitError(`There is no settlement ${id}`, { code: "not-found" });
  if (settlement.state !== "submitted") {
    throw new KitError(`The settlement is ${settlement.state}: nothing is left to examine`);
  }
  if (!networks.some(({ name }) => name === settlement.network)) {
    throw new KitError(`The settlement is of ${settlement.network}, which is not configured`);
  }
  return settlement;
}

async function listSetAside(
  ledger: Ledger,
  { name }: NetworkConfig,
  now: number,
): Promise<readonly Settlement[]> {
  const found: Settlement[] = [];
  const filter = { state: "submitted", network: name } as const;
  let after: Parameters<Ledger["claims"]["list"]>[1]["after"];
  do {
    const { settlements, next } = await ledger.claims.list(filter, { limit: pageSize, after });
    found.push(...settlements.filter((settlement) => isSetAside(settlement, now)));
    after = next ?? undefined;
  } while (after !== undefined);
  return found;
}

function describeResults(results: readonly Reexamined[], dryRun: boolean): string {
  if (results.length === 0) return "No settlement is set aside.";
  const reasons = results.map(({ settlement, found }) => `${settlement}: ${found}`);
  return [renderOutcomes(results), ...reasons, ...(dryRun ? ["Nothing was changed."] : [])].join("\n");
}
