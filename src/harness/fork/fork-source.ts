import type { AuthorizationSlots } from "../../methods/exact-eip3009/on-chain/storage-slots.ts";
import type { Address } from "../../protocol/hex.ts";
import type { Network } from "../../protocol/networks.ts";
import type { NodeFork } from "../nodes/nodes.ts";
import type { ForkSpec } from "./fork-options.ts";

/** What a node forks from: a server on this machine that asks the network, or answers from a recording. */
export type ForkSource = NodeFork & {
  readonly network: Network;
  /** What a node takes as the URL to fork from. It holds no key: every user of the machine can see the arguments of a process. */
  readonly url: string;
  /**
   * From a recording only: the token whose authorizations were all signed after it, with the slot of the mapping that
   * keeps their states. Gives where to note what calls name.
   */
  expectAuthorizations(token: Address, mappingSlot: bigint): AuthorizationSlots;
  /** Ends the server, and writes the recording that was asked for. */
  close(): Promise<void>;
};

export type OpenForkOptions = {
  network: Network;
  spec: ForkSpec;
  facilitatorContract: Address;
  /** The accounts that the harness puts in place itself; on the fork nothing of theirs is left. */
  blankAccounts: readonly Address[];
  /** Gives up opening. */
  signal?: AbortSignal | undefined;
};
