import { type Address, type Hex, readAddress } from "../../protocol/hex.ts";
import { KitError } from "../../util/errors.ts";
import { aText, requireArgument } from "../../util/given.ts";
import type { FaultBoard } from "../faults/fault-board.ts";
import type { JournalStore } from "../journal/journal.ts";
import type { PaymentReader } from "../journal/journal-reader.ts";
import type { ForkFailures } from "../nodes/nodes.ts";
import type { Chains } from "../setup/chains.ts";

/** What control needs of a running harness. */
export type ControlledHarness = {
  readonly chains: Chains["chains"];
  /** Trouble between the service and the nodes, and on the chains. */
  readonly faults: FaultBoard;
  /** What the service did; undefined where no journal is kept. */
  readonly journal: JournalStore | undefined;
  /** What became of payments, and why. */
  readonly payments: PaymentReader;
  /** The next authorization nonce that follows from the seed; undefined without a seed, when any will do. */
  nextAuthorizationNonce(): Hex | undefined;
  /** How often each forked chain could not ask its network, and why it last could not. */
  forkFailures(): readonly ForkFailures[];
  /** Remembers chains and ledger as they are; gives an id for {@link restore}. */
  snapshot(): Promise<string>;
  /** @throws KitError when there is no such snapshot any more */
  restore(id: string): Promise<void>;
  /** Puts chains and service back to where they were when they were started. */
  reset(): Promise<void>;
};

/** @throws KitError when what a person gave as an account is no address, or a mistyped one (EIP-55) */
export function requireAccount(text: string): Address {
  requireArgument("account", text, aText);
  const { address, problem } = readAddress(text);
  if (problem !== undefined) throw new KitError(`The account ${JSON.stringify(text)} ${problem}`);
  return address;
}
