/** How long the server waits for its clients, in milliseconds. Nothing here limits how long a settle may take. */
export type Timeouts = {
  /** For the request line and the headers. */
  headersMs: number;
  /** For the whole request, body included. */
  requestMs: number;
  /** For the next request on an open connection. */
  keepAliveMs: number;
  /** How often the first two are looked at. */
  checkMs: number;
};

/**
 * A request is about 1 KiB, so whoever takes longer is slow on purpose or gone. Connections stay open for longer than
 * balancers keep theirs (60 s as a rule): else the balancer would send a request into one that we are just closing.
 */
export const defaultTimeouts: Timeouts = {
  headersMs: 10_000,
  requestMs: 20_000,
  keepAliveMs: 75_000,
  checkMs: 2_000,
};
