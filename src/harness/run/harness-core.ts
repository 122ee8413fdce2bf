import { createLocalSigner } from "../../chain/signing/local-signer.ts";
import type { NetworkConfig } from "../../config/serve-config.ts";
import type { Database } from "../../ledger/database/database.ts";
import { addRows, createMemoryDatabases, readRows } from "../../ledger/database/sqlite/memory-databases.ts";
import { dropLeases } from "../../ledger/leases.ts";
import type { LedgerTables } from "../../ledger/rows.ts";
import { builtInNetworks } from "../../protocol/networks.ts";
import { harnessAccounts } from "../../published/accounts.ts";
import { createOrganizations } from "../../service/organizations/create-organizations.ts";
import { reserve } from "../../service/organizations/recipient.ts";
import { createCore } from "../../service/service.ts";
import { KitError } from "../../util/errors.ts";
import type { HarnessChain } from "../setup/chain.ts";
import { createLocalOrganizations, withTestKeys } from "./local-organizations.ts";
import type { MadeCore } from "./replaceable-core.ts";
import type { StartOptions } from "./start-options.ts";

/** The pepper of a database that lives as long as the harness and holds one published key. */
const localPepper = "x402-facilitator-kit local harness";

/**
 * Databases that hold the organizations, all alike, in memory: nothing is to outlive the harness, not even when it is
 * killed. The first one is filled at once, while the nodes still start.
 */
export function prepareDatabases(options: StartOptions): () => Promise<Database> {
  const { networks: names, knownNetworks = builtInNetworks, facilitatorContracts, assets = {} } = options;
  const reserved = reserve(
    names.flatMap((name) => {
      const network = knownNetworks.named(name);
      if (network === undefined) return [];
      const facilitatorContract = facilitatorContracts[network.tier];
      return [{ name, facilitatorContract, assets: [assets[name] ?? network.usdc] }];
    }),
  );
  const open = createMemoryDatabases((db) =>
    createLocalOrganizations(
      createOrganizations({ db, pepper: localPepper, now: Date.now, reserved }),
      options,
    ),
  );
  let first: Promise<Database> | undefined = open();
  // Reported when it is taken.
  first.catch(() => {});
  return () => {
    const opened = first ?? open();
    first = undefined;
    return opened;
  };
}

/** Whether the chains' time is not this machine's. */
export function hasOwnClock({ seed, slice }: StartOptions): boolean {
  return seed !== undefined || slice !== undefined;
}

/**
 * The service's core, on a database of its own.
 *
 * @param rpcUrlOf where the service asks a chain
 */
export function makeCore(
  {
    chains,
    rpcUrlOf,
    serviceId,
    database,
  }: {
    chains: readonly HarnessChain[];
    rpcUrlOf: (chain: HarnessChain) => string;
    serviceId: string;
    database: Database;
  },
  options: StartOptions,
): MadeCore {
  const { settleWaitMs, discovery, logger, state } = options;
  const { operator, recoverer } = harnessAccounts;
  const core = createCore({
    ...{ serviceId, database, settleWaitMs, discovery, logger },
    networks: chains.map((chain) => configure(chain, rpcUrlOf(chain), options.payTo)),
    signers: [createLocalSigner(operator.privateKey)],
    recoverer: options.recovery === false ? undefined : createLocalSigner(recoverer.privateKey),
    apiKeyPepper: localPepper,
    clock: {
      behind: hasOwnClock(options) ? Number.POSITIVE_INFINITY : 120,
      ahead: Number.POSITIVE_INFINITY,
    },
  });
  return {
    ...core,
    organizations: withTestKeys(core.organizations, options.networks),
    async start({ rows = state?.saved?.rows, ...start }) {
      if (rows !== undefined) {
        // The requests that held leases were those of an earlier core, which alone had this ledger.
        const adding = addRows(database, rows).then(() => dropLeases(database.$extendTables<LedgerTables>()));
        await adding.catch((cause: unknown) => {
          throw new KitError("The saved ledger does not fit the one of this version", {
            cause,
            hints: ["It is damaged, or another version has saved it: use that one, or begin anew."],
          });
        });
      }
      await core.start(start);
    },
    readRows: () => readRows(database),
  };
}

/** A local chain as the service is configured for it. */
function configure(
  { network, facilitatorContract, asset }: HarnessChain,
  rpcUrl: string,
  payTo: StartOptions["payTo"],
): NetworkConfig {
  return {
    ...network,
    blockTimeMs: 1_000,
    facilitatorContract,
    payTo,
    rpcUrls: [rpcUrl],
    assets: [asset],
    confirmations: 1,
    // The harness has started the node itself.
    forwardEndpoints: 1,
    maxFeePerGas: 1_000_000_000_000n,
    // Its coins cost nothing; an organization may have a budget of its own.
    dailyGasBudget: null,
  };
}
