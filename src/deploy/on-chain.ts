import type { Rpc } from "../chain/rpc.ts";
import type { NetworkConfig } from "../config/network-config.ts";

/** A network, and an endpoint that serves it. */
export type OnChain = { rpc: Pick<Rpc, "ask">; network: NetworkConfig };
