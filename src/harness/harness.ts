import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Logger } from "pino";
import type { NetworkConfig } from "../config/network-config.ts";
import { KitError } from "../errors/base.ts";
import type { NetworkName } from "../protocol/networks.ts";
import type { Service } from "../service.ts";
import { harnessAccounts } from "./accounts.ts";
import type { FacilitatorContracts } from "./addresses.ts";
import type { HarnessChain } from "./chain.ts";
import { type Chains, startChains } from "./chains.ts";
import type { HarnessDescription } from "./description.ts";
import { localOrganization } from "./local-organization.ts";
import { testPayers } from "./test-payers.ts";

export type HarnessOptions = {
  networks: readonly NetworkName[];
  facilitatorContracts: FacilitatorContracts;
  host: string;
  /** 0 for any free port. */
  port: number;
  settleWaitMs?: number | undefined;
  logger: Logger;
  /** Gives up the start. */
  signal?: AbortSignal;
};

/** Local chains and the service running against them. */
export type Harness = {
  readonly description: HarnessDescription;
  readonly chains: Chains["chains"];
  readonly service: Service;
  /** Calls the listener when a node dies that was not asked to. */
  onFailure(listener: (error: KitError) => void): void;
  /** Ends the service and the chains, and leaves nothing behind. */
  close(): Promise<void>;
};

/** The pepper of a database that lives as long as the harness and holds one published key. */
const localPepper = "x402-facilitator-kit local harness";

/** Starts the chains, puts everything in place on them, and runs the service against them. */
export async function startHarness(options: HarnessOptions): Promise<Harness> {
  const { host, port, logger, signal } = options;
  const directory = await makeDirectory();
  // The imports of the service take as long as the nodes do: both at once.
  const importing = Promise.all([
    import("../service.ts"),
    import("./control.ts"),
    import("../chain/local-signer.ts"),
  ]);
  importing.catch(() => {});
  let chains: Chains | undefined;
  let service: Service | undefined;

  async function close(): Promise<void> {
    await service?.close();
    await chains?.stop();
    await rm(directory, { recursive: true, force: true });
  }

  try {
    chains = await startChains({
      networks: options.networks,
      facilitatorContracts: options.facilitatorContracts,
      ...(signal && { signal }),
    });
    const running = Object.values(chains.chains);
    const [{ createService }, { controlRoutes }, { createLocalSigner }] = await importing;
    service = await createService({
      networks: running.map(configure),
      signers: [createLocalSigner(harnessAccounts.operator.privateKey)],
      databaseUrl: `sqlite:${join(directory, "ledger.sqlite")}`,
      apiKeyPepper: localPepper,
      settleWaitMs: options.settleWaitMs,
      logger,
    });
    await createLocalOrganization(service, options.networks);
    let description: HarnessDescription | undefined;
    const describe = (): HarnessDescription => {
      if (description === undefined) throw new Error("the harness is not ready yet");
      return description;
    };
    const { chains: byName } = chains;
    await service.app.register(async (app) => controlRoutes(app, { describe, chains: byName }));
    const [origin] = await Promise.all([service.listen({ host, port }), service.start()]);
    description = describeHarness(origin, running);
    return { description, chains: byName, service, onFailure: chains.onFailure, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Where the database lives as long as the harness does. */
async function makeDirectory(): Promise<string> {
  try {
    return await mkdtemp(join(tmpdir(), "x402-kit-"));
  } catch (cause) {
    throw new KitError(`No temporary folder can be made in ${tmpdir()}`, {
      cause,
      hints: [
        "The database of the local facilitator needs one. Set TMPDIR to a folder that can be written to.",
      ],
    });
  }
}

/** A local chain as the service is configured for it. */
function configure({ network, rpcUrl, facilitatorContract, asset }: HarnessChain): NetworkConfig {
  return {
    ...network,
    blockTimeMs: 1_000,
    facilitatorContract,
    rpcUrls: [rpcUrl],
    assets: [asset],
    confirmations: 1,
    maxFeePerGas: 1_000_000_000_000n,
  };
}

async function createLocalOrganization(service: Service, networks: readonly NetworkName[]): Promise<void> {
  const { id, name, apiKey, recipient } = localOrganization;
  const { organizations } = service;
  await organizations.create({ id, name });
  for (const network of networks) await organizations.setRecipient(id, network, recipient);
  await organizations.createKey(id, { scopes: ["verify", "settle"], key: apiKey });
}

function describeHarness(origin: string, chains: readonly HarnessChain[]): HarnessDescription {
  const { id, apiKey, recipient } = localOrganization;
  return {
    facilitator: { url: `${origin}/v1` },
    organization: { id, apiKey, recipient },
    payers: Object.fromEntries(
      Object.entries(testPayers).map(([name, { address, privateKey }]) => [name, { address, privateKey }]),
    ),
    networks: Object.fromEntries(
      chains.map(({ network, rpcUrl, facilitatorContract, asset }) => [
        network.name,
        { chainId: network.chainId, caip2: network.caip2, rpcUrl, facilitatorContract, asset },
      ]),
    ),
  };
}
