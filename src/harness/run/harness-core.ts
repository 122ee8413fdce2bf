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

/** A constant is fine, because the database only holds published keys. */
const localPepper = "x402-facilitator-kit local harness";

/**
 * Returns a function that opens identical databases with the organizations. They are in memory, so that nothing outlives the
 * harness, even if it is killed. The first one is filled immediately, while the nodes are still starting.
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
  // An error is reported when the database is taken.
  first.catch(() => {});
  return () => {
    const opened = first ?? open();
    first = undefined;
    return opened;
  };
}

/** Returns true if the chains have their own clock instead of this machine's. */
export function hasOwnClock({ seed }: StartOptions): boolean {
  return seed !== undefined;
}

/**
 * Creates the service's core with its own database.
 *
 * @param rpcUrlOf returns the RPC URL that the service uses for a chain
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
        // Leases can be dropped: they belong to requests of an earlier core, the only user of this ledger.
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

/** Returns the service's configuration for a local chain. */
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
    // One endpoint is enough, because the harness has started the node itself.
    forwardEndpoints: 1,
    maxFeePerGas: localMaxFeePerGas,
    usualTip: localTip,
    // Local coins cost nothing. An organization may still have its own budget.
    dailyGasBudget: null,
  };
}

const active: ReadonlyMap<string, TestKey> = new Map(
  Object.values(testKeys)
    .filter(({ state }: TestKey) => state === "active")
    .map((key) => [key.apiKey, key]),
);

/**
 * Adds the organizations of the published API keys. Each is created by the first request with its key, so that starts and
 * resets do not wait for it. Revoked and expired test keys are never created; unknown keys get the same 401.
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
    // The next request tries again.
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
          // The key already exists if the database continues from saved rows.
          if (keys.some(({ keyId }) => keyId === key.split("_")[1])) return;
          await organizations.createKey(organizationId, { scopes, key });
        });
      }
      return organizations.authenticate(key);
    },
  };
}

/** Creates the local organization and the configured ones. Only the latter get their keys right away. */
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
