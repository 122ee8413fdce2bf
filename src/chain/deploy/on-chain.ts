import type { NetworkConfig } from "../../config/network-config.ts";
import type { Rpc } from "../rpc/rpc.ts";

/** A network, and an endpoint that serves it. */
export type OnChain = { rpc: Pick<Rpc, "ask">; network: NetworkConfig };
