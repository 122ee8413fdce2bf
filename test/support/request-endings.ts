import type { RpcExchange, RpcObserver } from "../../src/chain/rpc/endpoint-state.ts";

/** Records the requests to a network's endpoints. */
export function noteRequests() {
  const exchanges: RpcExchange[] = [];
  const observer: RpcObserver = { exchanged: (exchange) => void exchanges.push(exchange) };
  return {
    exchanges,
    observer,
    /** How the newest request to each endpoint ended, in the order of the configuration: "well", or with which error. */
    endings(): string[] {
      const newest = new Map(exchanges.map(({ endpoint, error = "well" }) => [endpoint, error]));
      return [...newest].sort(([a], [b]) => Number(a) - Number(b)).map(([, ending]) => ending);
    },
  };
}
