import type { Chain } from "../chain/chain.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { NetworkName } from "../protocol/networks.ts";
import type { X402Version } from "../protocol/requests.ts";
import type { Outcomes } from "../relayer/outcomes.ts";
import type { Relayer } from "../relayer/relayer.ts";

/** What the facilitator needs of one network. */
export type FacilitatorNetwork = { chain: Chain; relayer: Relayer };

/** The collaborators of verify and settle. */
export type FacilitatorContext = {
  networks: ReadonlyMap<NetworkName, FacilitatorNetwork>;
  ledger: Ledger;
  outcomes: Outcomes;
  /** Unix milliseconds; for waiting only. The time of a payment is the chain's. */
  now: () => number;
  /** How long a settle waits for its outcome, by protocol version. */
  settleWaitMs: Readonly<Record<X402Version, number>>;
  /** Aborts when the service shuts down: whoever waits is answered. */
  closing: AbortSignal;
};
