import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { createLocalRpc } from "../../chain/rpc/local-rpc.ts";
import { channels } from "../../observe/channels/channels.ts";
import { harnessAccounts } from "../../payer/accounts.ts";
import type { Address } from "../../protocol/hex.ts";
import { type NetworkName, networkNames } from "../../protocol/networks.ts";
import { ConfigurationError } from "../../util/errors.ts";
import { createHttpRelay, relayTargetOf } from "../../util/http-relay.ts";
import { listenOnLoopback } from "../../util/node-http.ts";
import { notRunning } from "../control/description.ts";
import type { HarnessChain } from "../setup/prepare-chain.ts";
import { answerCalls, breakAnswers, breakExchange } from "./break-exchange.ts";
import { createChainFaults, hitMethods } from "./chain-faults.ts";
import {
  type ConnectionFaults,
  createConnectionFaults,
  type Hit,
  type HitReport,
  type Message,
  readAnswers,
  readMessage,
} from "./connection-faults.ts";
import { type ConnectionFaultSpec, type FaultSpec, facilitatorPlace, readFaultSpec } from "./fault-spec.ts";
import type { FaultBoard, FaultReport } from "./faults.ts";

/** A loopback proxy in front of one node. Disposing of it closes it and every connection through it. */
export type FaultProxy = Awaited<ReturnType<typeof createFaultProxy>>;

/** A JSON-RPC request that went through a proxy, with the node's answer to each call. Times are in milliseconds. */
export type ProxiedExchange = {
  /** Milliseconds since the epoch. */
  at: number;
  tookMs: number;
  calls: readonly ProxiedCall[];
};

export type ProxiedCall = {
  method: string;
  params: readonly unknown[];
  /** Has neither result nor error if the node was not asked or did not answer. */
  answer: { result?: unknown; error?: unknown };
  /** The kinds of the faults that hit it. */
  faults: readonly string[];
};

export type FaultProxyOptions = {
  /** The URL of the node, over plain HTTP. */
  target: string;
  /** Called after every exchange. Without it, requests are not even parsed while no fault is armed. */
  onExchange?: ((exchange: ProxiedExchange) => void) | undefined;
};

/**
 * Starts a proxy that breaks the JSON-RPC between a service and a node as real networks and providers do. Without a
 * fault, requests pass unchanged. It listens on the node's own host, so that web pages can reach it only if they can
 * reach the node.
 *
 * @example
 * await using proxy = await createFaultProxy({ target: chain.rpcUrl });
 * proxy.faults.add({ network: "base", kind: "answer-lost", method: "eth_sendRawTransaction", nth: 2 });
 */
export async function createFaultProxy({ target, onExchange }: FaultProxyOptions) {
  const faults = createConnectionFaults();
  const node = createLocalRpc(target);
  const to = relayTargetOf(target);

  async function exchange(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = await text(incoming);
    const message = readMessage(body);
    const hits = message === undefined ? [] : faults.take(message.calls);
    const headers = { "content-type": "application/json" };
    const send = async (sent: string) =>
      text(await relay.forward(incoming, outgoing, { body: sent, headers }));
    let answered = "";
    const answer = async () => {
      answered = await (message === undefined || hits.length === 0
        ? send(body)
        : answerCalls(message, hits, node, send));
      return answered;
    };
    const at = Date.now();
    const from = performance.now();
    try {
      await breakExchange(hits, outgoing, answer);
    } finally {
      if (onExchange !== undefined && message !== undefined) {
        const calls = describeCalls(message, answered, hits);
        onExchange({ at, tookMs: performance.now() - from, calls });
      }
    }
  }

  const relay = createHttpRelay({
    target: () => to,
    ...(onExchange === undefined && { reads: () => faults.armed }),
    // To the service, a dead node looks the same as without a proxy.
    answer: (incoming, outgoing) => void exchange(incoming, outgoing).catch(() => outgoing.socket?.destroy()),
  });
  return {
    url: `http://${to.host}:${await listenOnLoopback(relay.server, { host: to.host })}`,
    /** The faults of the connection; none at first. */
    faults,
    [Symbol.asyncDispose]: relay.close,
  };
}

function describeCalls({ calls }: Message, answered: string, hits: readonly Hit[]): ProxiedCall[] {
  const answers = readAnswers(answered, calls);
  return calls.map(({ method, params }, index) => ({
    method,
    params,
    answer: answers[index] ?? {},
    faults: hits.filter((hit) => hit.calls.has(index)).map(({ fault }) => fault.spec.kind),
  }));
}

type Listed = { report(): FaultReport; undo(): Promise<void> | void };

/** Chains with the proxies in front of their nodes, by network. */
type ProxiedChains = Record<string, { chain: HarnessChain; proxy: FaultProxy }>;

/** Creates the board that sets faults on the chains and on the connections between the service and their nodes. */
export function createFaults(options: {
  networks: Readonly<ProxiedChains>;
  /** The faults of requests to the facilitator. */
  facilitator?: ConnectionFaults;
  /** The accounts whose gas money `empty-operator` takes. */
  operators: readonly Address[];
  /** Identifies the service under test on the channel `fault`. */
  serviceId: string;
}): FaultBoard {
  const { networks, facilitator = createConnectionFaults(), operators, serviceId } = options;
  const listed = new Map<string, Listed>();
  /** Chain faults that are still being set, and may be listed soon. */
  const beginning = new Set<Promise<unknown>>();
  const onChains = new Map<NetworkName, ReturnType<typeof createChainFaults>>();
  for (const { chain } of Object.values(networks)) {
    onChains.set(chain.network.name, createChainFaults({ chain, operators }));
  }
  let lastId = 0;

  function publishHit({ network, kind: fault }: FaultSpec, faultId: string, hit: HitReport): void {
    channels.fault.publish(() => ({
      kind: "fault",
      at: Date.now(),
      serviceId,
      network,
      faultId,
      fault,
      ...hit,
    }));
  }

  /** Sets a connection fault. `spec` must not be a chain fault. */
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
            const hit = (what: HitReport) => {
              fired++;
              publishHit(spec, id, what);
            };
            const { undo, transactions } = await onChain(spec);
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

/** Starts a proxy in front of each chain's node, and the fault board on top. */
export async function startFaults(
  chains: readonly HarnessChain[],
  serviceId: string,
  onExchange: FaultProxyOptions["onExchange"],
) {
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
    /** Applies the facilitator's faults to requests to this server. */
    breakAnswers: (server: Server) => breakAnswers(server, facilitator),
    /** The RPC URL of a chain for the service: the proxy in front of its node. */
    serviceRpcUrl: ({ network, rpcUrl }: HarnessChain) => networks[network.name]?.proxy.url ?? rpcUrl,
    /** Ends all faults; call it before the service is replaced. */
    beforeReset: () => faults.clear(),
    async close() {
      for (const { proxy } of Object.values(networks)) await proxy[Symbol.asyncDispose]();
    },
  };
}
