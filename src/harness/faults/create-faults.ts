import type { Server } from "node:http";
import { channels, type FaultHit } from "../../observe/channels/channels.ts";
import type { Address } from "../../protocol/hex.ts";
import { type NetworkName, networkNames } from "../../protocol/networks.ts";
import { harnessAccounts } from "../../published/accounts.ts";
import { ConfigurationError } from "../../util/errors.ts";
import { notRunning } from "../control/description.ts";
import type { HarnessChain } from "../setup/prepare-chain.ts";
import { breakAnswers } from "./break-exchange.ts";
import { type ChainFaults, createChainFaults, hitMethods } from "./chain-faults.ts";
import { type ConnectionFaults, createConnectionFaults } from "./connection-faults.ts";
import type { FaultBoard, FaultReport } from "./fault-board.ts";
import { createFaultProxy, type FaultProxy, type FaultProxyOptions } from "./fault-proxy.ts";
import { type ConnectionFaultSpec, type FaultSpec, facilitatorPlace, readFaultSpec } from "./fault-spec.ts";

type Listed = { report(): FaultReport; undo(): Promise<void> | void };

/** Chains with the proxies before their nodes. */
type ProxiedChains = Record<string, { chain: HarnessChain; proxy: FaultProxy }>;

/** Sets faults between the service and the nodes of these chains, and on the chains themselves. */
export function createFaults(options: {
  networks: Readonly<ProxiedChains>;
  /** Faults of requests to the facilitator. */
  facilitator?: ConnectionFaults;
  /** Whose gas money `empty-operator` takes. */
  operators: readonly Address[];
  /** Of the service that the faults hit; names it on the channel `fault`. */
  serviceId: string;
}): FaultBoard {
  const { networks, facilitator = createConnectionFaults(), operators, serviceId } = options;
  const listed = new Map<string, Listed>();
  /** Faults of chains that are being set, and will be listed. */
  const beginning = new Set<Promise<unknown>>();
  const onChains = new Map<NetworkName, ChainFaults>();
  for (const { chain } of Object.values(networks)) {
    onChains.set(chain.network.name, createChainFaults({ chain, operators }));
  }
  let lastId = 0;

  function publishHit(
    { network, kind: fault }: FaultSpec,
    faultId: string,
    hit: Pick<FaultHit, "methods" | "calls">,
  ): void {
    channels.fault.publish(() => ({
      ...{ kind: "fault", at: Date.now(), serviceId, network, faultId, fault },
      ...hit,
    }));
  }

  /** Sets a fault of a connection, which specs of chains are not. */
  function addTo(faults: ConnectionFaults, spec: FaultSpec): FaultReport {
    const id = `${++lastId}`;
    const fault = faults.add(spec as ConnectionFaultSpec, (hit) => publishHit(spec, id, hit));
    const report = (): FaultReport => {
      const { fired, usedUp } = fault;
      return { ...spec, id, fired, ...(usedUp && { usedUp }) };
    };
    listed.set(id, { report, undo: () => faults.remove(fault) });
    return report();
  }

  async function remove(id: string): Promise<boolean> {
    const fault = listed.get(id);
    listed.delete(id);
    await fault?.undo();
    return fault !== undefined;
  }

  return {
    async add(raw) {
      const spec = readFaultSpec(raw, [...new Set([...networkNames, ...onChains.keys()])]);
      const { network } = spec;
      if (network === facilitatorPlace) return addTo(facilitator, spec);
      const proxy = networks[network]?.proxy;
      const onChain = onChains.get(network);
      if (proxy === undefined || onChain === undefined) {
        throw new ConfigurationError([{ name: "network", problem: notRunning(network, networks) }]);
      }
      switch (spec.kind) {
        case "hold-blocks":
        case "drop":
        case "reorg":
        case "base-fee":
        case "empty-operator": {
          const id = `${++lastId}`;
          const begin = async () => {
            let fired = 0;
            const hit = (what: Pick<FaultHit, "methods" | "calls">) => {
              fired++;
              publishHit(spec, id, what);
            };
            const { undo, transactions } = await onChain.apply(spec);
            hit({ methods: [], calls: transactions.map((hash) => ({ params: [hash], isHit: true })) });
            const report = () => ({ ...spec, id, fired });
            if (undo === undefined) return report();
            const method = hitMethods[spec.kind];
            const unwatch = method === undefined ? () => {} : proxy.faults.watch(method, hit);
            const end = () => {
              unwatch();
              return undo();
            };
            listed.set(id, { report, undo: end });
            return report();
          };
          const begun = begin().finally(() => beginning.delete(begun));
          beginning.add(begun);
          return begun;
        }
        default:
          return addTo(proxy.faults, spec);
      }
    },

    async list() {
      return [...listed.values()].map(({ report }) => report());
    },

    remove,

    async clear() {
      await Promise.allSettled(beginning);
      for (const id of [...listed.keys()].reverse()) await remove(id);
    },
  };
}

/** What a harness needs of faults. */
export type StartedFaults = {
  faults: FaultBoard;
  /** Where the service finds a chain: at the proxy before its node. */
  serviceRpcUrl(chain: HarnessChain): string;
  /** Has requests that come to this server end as faults of the facilitator have it. */
  breakAnswers(server: Server): void;
  /** Ends all faults before the service is replaced. */
  beforeReset(): Promise<void>;
  close(): Promise<void>;
};

/** Puts a proxy before the node of each chain. */
export async function startFaults(
  chains: readonly HarnessChain[],
  { serviceId, onExchange }: Pick<FaultProxyOptions, "onExchange"> & { serviceId: string },
): Promise<StartedFaults> {
  const networks: ProxiedChains = {};
  await Promise.all(
    chains.map(async (chain) => {
      networks[chain.network.name] = {
        chain,
        proxy: await createFaultProxy({ target: chain.rpcUrl, onExchange }),
      };
    }),
  );
  const facilitator = createConnectionFaults();
  const faults = createFaults({
    networks,
    facilitator,
    operators: [harnessAccounts.operator.address],
    serviceId,
  });
  return {
    faults,
    breakAnswers: (server) => breakAnswers(server, facilitator),
    serviceRpcUrl: ({ network, rpcUrl }) => networks[network.name]?.proxy.url ?? rpcUrl,
    beforeReset: () => faults.clear(),
    async close() {
      for (const { proxy } of Object.values(networks)) await proxy[Symbol.asyncDispose]();
    },
  };
}
