import { createAuthorizers, createLocalSigner } from "../../chain/signing/local-signer.ts";
import type { NetworkConfig } from "../../config/serve-config.ts";
import type { Database } from "../../ledger/database/database.ts";
import { addRows, createMemoryDatabases, readRows } from "../../ledger/database/sqlite/memory-databases.ts";
import { dropLeases } from "../../ledger/leases.ts";
import type { LedgerTables } from "../../ledger/rows.ts";
import { harnessAccounts } from "../../payer/accounts.ts";
import {
  localGifts,
  localMaxFeePerGas,
  localTerms,
  localTip,
  localTokens,
} from "../../payer/local-chains.ts";
import {
  localOrganization,
  type TestKey,
  type TestOrganization,
  testKeys,
  testOrganizations,
} from "../../payer/test-keys.ts";
import { builtInNetworks, type NetworkName } from "../../protocol/networks.ts";
import { maxUint256 } from "../../protocol/wire-values.ts";
import { createOrganizations } from "../../service/organizations/create-organizations.ts";
import { type Organizations, reserve } from "../../service/organizations/organizations.ts";
import { createCore } from "../../service/service.ts";
import { KitError } from "../../util/errors.ts";
import type { HarnessChain } from "../setup/prepare-chain.ts";
import type { MadeCore } from "./replaceable-core.ts";
import type { StartOptions } from "./running-harness.ts";

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
      return [
        { name, facilitatorContract, assets: [assets[name] ?? network.usdc, ...Object.values(localTokens)] },
      ];
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

/** Returns true if the chains' time is not this machine's. */
export function hasOwnClock({ seed }: StartOptions): boolean {
  return seed !== undefined;
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
  const { operator, recoverer, sponsor } = harnessAccounts;
  const authorizers = createAuthorizers([harnessAccounts.authorizer.privateKey]);
  const core = createCore({
    serviceId,
    database,
    settleWaitMs,
    discovery,
    logger,
    networks: chains.map((chain) => ({ ...configure(chain, rpcUrlOf(chain), options), ...authorizers })),
    signers: [createLocalSigner(operator.privateKey)],
    recoverer: options.recovery === false ? undefined : createLocalSigner(recoverer.privateKey),
    sponsor: createLocalSigner(sponsor.privateKey),
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
  { network, facilitatorContract, asset, tokens }: HarnessChain,
  rpcUrl: string,
  { payTo, strictness, reasons }: StartOptions,
): NetworkConfig {
  return {
    ...network,
    blockTimeMs: 1_000,
    facilitatorContract,
    payTo,
    reasons,
    ...localTerms,
    ...(strictness === "reference" && { strictness, maxValiditySeconds: maxUint256 }),
    gifts: localGifts,
    rpcUrls: [rpcUrl],
    assets: [asset, ...Object.values(tokens)],
    confirmations: 1,
    // The harness has started the node itself.
    forwardEndpoints: 1,
    maxFeePerGas: localMaxFeePerGas,
    usualTip: localTip,
    // Its coins cost nothing; an organization may have a budget of its own.
    dailyGasBudget: null,
  };
}

const active: ReadonlyMap<string, TestKey> = new Map(
  Object.values(testKeys)
    .filter(({ state }: TestKey) => state === "active")
    .map((key) => [key.apiKey, key]),
);

/**
 * Adds the organizations of the published API keys. Each is created by the first request with its key, so that starts
 * and resets do not wait for it. Keys that stand for one that is not good stay unknown, which is answered by the same 401.
 */
export function withTestKeys(organizations: Organizations, networks: readonly NetworkName[]): Organizations {
  const created = new Map<string, Promise<void>>();

  async function create(id: string, organization: TestOrganization): Promise<void> {
    if ((await organizations.find(id)) !== null) return;
    const { name, recipient, ...limits } = organization;
    await organizations.create({ id, name });
    if (recipient === undefined) return;
    for (const network of networks) {
      await organizations.setRecipient(id, network, recipient);
      await organizations.setLimits(id, network, limits);
    }
  }

  function once(name: string, act: () => Promise<void>): Promise<void> {
    const known = created.get(name);
    if (known !== undefined) return known;
    const creating = act();
    created.set(name, creating);
    // Tried again by the next request.
    creating.catch(() => created.delete(name));
    return creating;
  }

  return {
    ...organizations,
    async authenticate(key) {
      const known = active.get(key);
      if (known !== undefined) {
        const { organizationId, scopes } = known;
        await once(key, async () => {
          await once(organizationId, () => create(organizationId, testOrganizations[organizationId]));
          const keys = await organizations.listKeys(organizationId);
          // It is there where the database goes on with the rows of another.
          if (keys.some(({ keyId }) => keyId === key.split("_")[1])) return;
          await organizations.createKey(organizationId, { scopes, key });
        });
      }
      return organizations.authenticate(key);
    },
  };
}

/** Creates the local organization, and those that were asked for, which have their keys at once. */
async function createLocalOrganizations(
  organizations: Organizations,
  { networks, recipient = localOrganization.recipient, organizations: asked = [] }: StartOptions,
): Promise<void> {
  const { id, name } = localOrganization;
  await organizations.create({ id, name });
  for (const network of networks) await organizations.setRecipient(id, network, recipient);
  for (const { id, name, apiKey, scopes, networks } of asked) {
    await organizations.create({ id, name });
    for (const [network, { recipient, ...limits }] of networks) {
      await organizations.setRecipient(id, network, recipient);
      await organizations.setLimits(id, network, limits);
    }
    await organizations.createKey(id, { scopes, key: apiKey });
  }
}
