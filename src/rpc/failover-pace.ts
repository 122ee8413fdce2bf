/** When an endpoint is passed over for another. Where there is but one, `longestPauseMs` alone means anything. */
export type FailoverPace = {
  /** The longest that a request waits for one endpoint while there is another to ask. */
  passOverMs: number;
  /** Between two probes of an endpoint that is not failing. */
  probeMs: number;
  /** Before a failing endpoint is probed; doubles with each failure that follows. */
  firstPauseMs: number;
  /** The longest that an endpoint is left alone, whatever its Retry-After says. */
  longestPauseMs: number;
  /** Nobody having asked anything for so long, probing rests until somebody does. */
  restAfterMs: number;
  /** Whose answers take longer than this, and several times as long as another's, is slow. */
  slowMs: number;
  /** How far an endpoint may be behind the newest block that any showed. */
  maxLagBlocks: bigint;
  /** How long that block is remembered after it was last seen. */
  rememberHeadMs: number;
};

/**
 * For public and paid endpoints of chains with a block every two seconds: an endpoint ten seconds behind is passed
 * over, which is noticed within ten more, at the price of two cheap calls per endpoint every ten seconds.
 */
export const usualPace: FailoverPace = {
  passOverMs: 2_500,
  probeMs: 10_000,
  firstPauseMs: 1_000,
  longestPauseMs: 60_000,
  restAfterMs: 60_000,
  slowMs: 500,
  maxLagBlocks: 5n,
  rememberHeadMs: 600_000,
};
