import type { KitError } from "../../errors.ts";
import type { Address } from "../../protocol/hex.ts";
import type { Network } from "../../protocol/networks.ts";
import type { AuthorizationSlots } from "./authorization-slots.ts";
import type { ForkOrder } from "./fork-options.ts";

/** What a node forks from: a server on this machine that asks the network, or answers from a recording. */
export type ForkSource = {
  readonly network: Network;
  readonly kind: ForkOrder["kind"];
  /** What a node takes as the URL to fork from. It holds no key, as arguments of a process are seen by everybody. */
  readonly url: string;
  readonly blockNumber: bigint;
  /** What could not be answered so far: calls without an answer in the recording, or a network gone. */
  failures(): ForkFailures;
  /** Calls the listener at each failure, once for the same call. */
  onFailure(listener: (error: KitError) => void): void;
  /**
   * From a recording only: the token whose authorizations were all signed after it, with the slot of the mapping that
   * keeps their states. Gives where to note what calls name.
   */
  expectAuthorizations(token: Address, mappingSlot: bigint): AuthorizationSlots;
  /** Whether closing writes the recording that was asked for. Not at first: a failure must not replace a good one. */
  keepRecording(keep: boolean): void;
  /** Why a chain could not be put in place on the fork: what could not be asked comes before what came of that. */
  explainStart(error: unknown): unknown;
  /** Ends the server, and writes the recording that was asked for. */
  close(): Promise<void>;
};

/** How often a fork could not answer, and why it last could not. */
export type ForkFailures = { readonly count: number; readonly latest: KitError | undefined };

export type OpenForkOptions = {
  network: Network;
  order: ForkOrder;
  facilitatorContract: Address;
  /** The accounts that the harness puts in place itself; on the fork nothing of theirs is left. */
  blankAccounts: readonly Address[];
  /** Gives up opening. */
  signal?: AbortSignal | undefined;
};
