import { setTimeout as delay } from "node:timers/promises";
import { UndeterminedError } from "../../util/errors.ts";
import { chainIdCall, headCall } from "./calls.ts";
import { type Answers, createEndpoint, type Endpoint, type HighestHead, isUsable } from "./endpoint.ts";
import { EndpointFailure, type RpcObserver } from "./endpoint-state.ts";
import { createRedactor, type Question, type RpcCall } from "./rpc.ts";

/** When to switch to another endpoint. For a network's only endpoint, only `longestPauseMs` applies. */
export type FailoverPace = {
  /** The longest wait for one endpoint while there is another. */
  passOverMs: number;
  /** The time between two probes of an endpoint that is not failing. */
  probeMs: number;
  /** The time until a failing endpoint is probed; doubles with each consecutive failure. */
  firstPauseMs: number;
  /** The longest pause of an endpoint, whatever its Retry-After says. */
  longestPauseMs: number;
  /**
   * How long after a failure `readAt` does not ask an endpoint. Much shorter than the longest pause: payments wait for
   * this endpoint's answer, which no other can replace.
   */
  askAgainMs: number;
  /** Probing stops after this time without a request, until the next one. */
  restAfterMs: number;
  /** An endpoint is slow if its responses take longer than this, and several times as long as another's. */
  slowMs: number;
  /** How many blocks an endpoint may be behind the newest block seen at any endpoint. */
  maxLagBlocks: bigint;
  /** How long that block is remembered after it was last seen. */
  rememberHeadMs: number;
};

/**
 * For public and paid endpoints of chains with a block every two seconds. An endpoint that is ten seconds behind is
 * skipped; it takes up to ten more to notice, and costs two cheap calls per endpoint every ten seconds.
 */
export const usualPace: FailoverPace = {
  passOverMs: 2_500,
  probeMs: 10_000,
  firstPauseMs: 1_000,
  longestPauseMs: 60_000,
  askAgainMs: 2_000,
  restAfterMs: 60_000,
  slowMs: 500,
  maxLagBlocks: 5n,
  rememberHeadMs: 600_000,
};

export type FailoverOptions = {
  network: string;
  chainId: number;
  /** In order of preference. */
  urls: readonly URL[];
  timeoutMs: number;
  /** The pause before a failed read is retried at the only endpoint. */
  retryDelayMs: number;
  pace: FailoverPace;
  observer: RpcObserver;
};

/** The longest that a read waits for a Retry-After if there is no other endpoint. */
const longestWaitMs = 2_000;

/**
 * Combines the endpoints of a network into one that works while at least one of them does. Uses the first healthy one in the
 * order of the configuration. Unhealthy ones are skipped until a response, mostly to a probe, shows that they have recovered.
 *
 * A single endpoint is neither checked nor probed: there is nothing to compare it with, every request is a probe, and a test
 * harness may rewind its chain. It only rests for a rate limit with Retry-After.
 */
export function createFailover(options: FailoverOptions) {
  const { network, chainId, urls, timeoutMs, retryDelayMs, pace, observer } = options;
  const several = urls.length > 1;
  const now = () => performance.now();
  const closing = new AbortController();
  const redact = createRedactor(urls);
  /** The timeout for one endpoint while there is another to ask. */
  const passOverMs = Math.min(pace.passOverMs, timeoutMs);
  const highest = createHighestHead(now, pace.rememberHeadMs);
  const endpoints = urls.map((url, index) =>
    createEndpoint({
      ...pace,
      label: `${index + 1}`,
      url,
      timeoutMs,
      now,
      redact,
      expected: several ? { chainId, maxLagBlocks: pace.maxLagBlocks, highest } : undefined,
      observer,
      onFailure: (endpoint) => prober?.failed(endpoint),
    }),
  );
  const prober = several ? createProber({ endpoints, pace, timeoutMs: passOverMs, now }) : undefined;

  async function readFromOnly(only: Endpoint, questions: readonly Question[]): Promise<Answers> {
    for (let attempt = 1; ; attempt++) {
      const answers =
        (await waitFor(only, closing.signal, attempt === 1 ? 0 : retryDelayMs)) ??
        (await only.read("read", questions));
      if (!(answers instanceof EndpointFailure)) return answers;
      // After a timeout, the node has already used its whole time limit.
      const isLast = attempt === 2 || answers.kind === "timeout" || only.retryAfterMs > longestWaitMs;
      if (isLast) throw undetermined([[only, answers]]);
    }
  }

  async function readFromAny(questions: readonly Question[], refused: number): Promise<Answers> {
    const failures: Failed[] = [];
    const turns = turnedBy(refused, routeOf(endpoints));
    for (const [turn, endpoint] of turns.entries()) {
      const limitMs = turn < turns.length - 1 ? passOverMs : timeoutMs;
      const answers =
        (await waitFor(endpoint, closing.signal)) ?? (await endpoint.read("read", questions, limitMs));
      if (!(answers instanceof EndpointFailure)) return answers;
      failures.push([endpoint, answers]);
    }
    throw undetermined(failures);
  }

  const undetermined = (failures: readonly Failed[]) => undeterminedBy(failures, { network, endpoints });

  return {
    /** @throws UndeterminedError when no endpoint gave a usable answer. */
    async read(questions: readonly Question[], refused: number): Promise<Answers> {
      prober?.wake();
      const [only] = endpoints;
      return several || only === undefined ? readFromAny(questions, refused) : readFromOnly(only, questions);
    },

    /**
     * Reads from this endpoint only.
     *
     * @throws UndeterminedError when it gave no usable answer, and at once for a short time after a failure.
     */
    async readAt(endpoint: Endpoint, questions: readonly Question[]): Promise<Answers> {
      prober?.wake();
      if (!several) return readFromOnly(endpoint, questions);
      const { state } = endpoint;
      // The pause of an unstable endpoint may have grown to a minute; it may have recovered long before that.
      const askAgainAt = Math.min(state.pausedUntil, state.failedAt + pace.askAgainMs);
      const isLeftAlone = endpoint.rank === undefined || (!isUsable(endpoint) && askAgainAt > now());
      const answers = isLeftAlone
        ? new EndpointFailure("connection", endpoint.state.detail ?? "is left alone")
        : ((await waitFor(endpoint, closing.signal)) ?? (await endpoint.read("read", questions, passOverMs)));
      if (answers instanceof EndpointFailure) throw undetermined([[endpoint, answers]]);
      return answers;
    },

    /** Returns all endpoints: first those that a read may ask, in that order, then those that serve another chain. */
    all: (): readonly Endpoint[] => [...new Set([...routeOf(endpoints), ...endpoints])],

    /**
     * Sends the batches in the given order to one endpoint, and to the next only if it does not answer: every endpoint
     * that sees a payment before it is mined could submit it to the token by itself, and each costs a request. An
     * endpoint that answers but drops the transactions is the reason for `everywhere`, used for what is not mined
     * after a while. All endpoints get the same bytes, which the chain accepts once, however many nodes hold them. A
     * rate limit does not delay a broadcast, because a payment is waiting and it is only one request.
     *
     * @throws UndeterminedError when no endpoint answered all of them.
     */
    async send(batches: readonly Question[], { everywhere }: { everywhere: boolean }): Promise<void> {
      prober?.wake();
      const turns = routeOf(endpoints);
      const well = turns.filter(isUsable);
      if (everywhere && well.length > 1) {
        const sent = await Promise.all(well.map((endpoint) => endpoint.send(batches, passOverMs)));
        if (sent.includes(undefined)) return;
      }
      const failures: Failed[] = [];
      for (const [turn, endpoint] of turns.entries()) {
        const failure = await endpoint.send(batches, turn < turns.length - 1 ? passOverMs : timeoutMs);
        if (failure === undefined) return;
        failures.push([endpoint, failure]);
      }
      throw undetermined(failures);
    },

    close() {
      closing.abort();
      prober?.stop();
      for (const endpoint of endpoints) endpoint.close();
    },
  };
}

/** An endpoint, and how its request failed. */
type Failed = readonly [Endpoint, EndpointFailure];

/** The endpoints to try, best first. The last ones are unlikely to work, but trying them beats giving up. */
function routeOf(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  if (endpoints.length <= 1) return endpoints;
  const ranked = endpoints.filter(({ rank }) => rank !== undefined);
  return ranked.sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0));
}

/** The order for calls that were refused before. One refusal may be chance; after two, another endpoint comes first. */
function turnedBy(refused: number, usual: readonly Endpoint[]): readonly Endpoint[] {
  if (refused < 2) return usual;
  const skipped = (refused - 1) % usual.length;
  return [...usual.slice(skipped), ...usual.slice(0, skipped)];
}

/** Waits until an endpoint may be read from, at least `leastMs`; returns a failure at once if that takes too long. */
async function waitFor(
  { retryAfterMs }: Endpoint,
  closing: AbortSignal,
  leastMs = 0,
): Promise<EndpointFailure | undefined> {
  if (retryAfterMs > longestWaitMs) {
    const seconds = Math.ceil(retryAfterMs / 1_000);
    return new EndpointFailure("rate_limited", `wants to be left alone for another ${seconds} s`);
  }
  const ms = Math.max(retryAfterMs, leastMs);
  // Rejects when everything is closed, which the next request will notice.
  if (ms > 0) await delay(ms, undefined, { signal: closing }).catch(() => {});
  return undefined;
}

function undeterminedBy(
  failures: readonly Failed[],
  { network, endpoints }: { network: string; endpoints: readonly Endpoint[] },
): UndeterminedError {
  const describe = ({ label }: Endpoint, what = "") =>
    `RPC endpoint ${label} of ${endpoints.length} of ${network}: ${what}`;
  const notTried = endpoints.filter(
    (endpoint) => endpoint.rank === undefined && !failures.some(([tried]) => tried === endpoint),
  );
  const hints = [
    ...failures.map(([endpoint, { message }]) => describe(endpoint, message)),
    ...notTried.map((endpoint) => describe(endpoint, endpoint.state.detail)),
  ];
  const cause = new Error(failures.at(-1)?.[1].message ?? "every endpoint serves another chain");
  return new UndeterminedError(`${network} could not be reached; try again`, { cause, hints });
}

/**
 * The highest block never decreases while any endpoint confirms it, so that no answer comes from an older chain than
 * an earlier answer. It is forgotten `rememberMs` after it was last seen, because a chain can go back: if it is reset,
 * or rolled back by its operators.
 */
function createHighestHead(now: () => number, rememberMs: number): HighestHead {
  let highest: { number: bigint; seenAt: number } | undefined;
  const current = () =>
    highest !== undefined && now() - highest.seenAt < rememberMs ? highest.number : undefined;
  return {
    number: current,
    saw(number) {
      if (number >= (current() ?? 0n)) highest = { number, seenAt: now() };
    },
  };
}

/** The calls of a probe. */
const probeCalls: readonly RpcCall[] = [chainIdCall, headCall];

/** A slow endpoint takes this many times as long as another. */
const slowFactor = 4;

/**
 * Probes every endpoint of a network from time to time. Each endpoint has its own timer, which does not keep the
 * process alive. The probe is the same for all, so that response times can be compared: an endpoint that takes several
 * times as long as another is slow.
 */
function createProber(options: {
  endpoints: readonly Endpoint[];
  pace: { probeMs: number; restAfterMs: number; slowMs: number };
  timeoutMs: number;
  now: () => number;
}) {
  const { endpoints, pace, timeoutMs, now } = options;
  const timers = new Map<Endpoint, NodeJS.Timeout>();
  const latencies = new Map<Endpoint, number>();
  let wokenAt = now();
  let stopped = false;

  function schedule(endpoint: Endpoint, usuallyMs: number): void {
    if (stopped) return;
    const pauseMs = endpoint.state.pausedUntil - now();
    clearTimeout(timers.get(endpoint));
    // Timers fire up to a millisecond early, and a failure within the pause does not extend it.
    const afterMs = pauseMs > 0 ? Math.ceil(pauseMs) + 1 : usuallyMs;
    timers.set(endpoint, setTimeout(() => void probe(endpoint), afterMs).unref());
  }

  async function probe(endpoint: Endpoint): Promise<void> {
    if (now() - wokenAt > pace.restAfterMs) {
      timers.delete(endpoint);
      return;
    }
    const sentAt = now();
    const answers = await endpoint.read("probe", [probeCalls], timeoutMs);
    if (!(answers instanceof EndpointFailure)) {
      const takenMs = now() - sentAt;
      latencies.set(endpoint, ((latencies.get(endpoint) ?? takenMs) + takenMs) / 2);
      for (const each of endpoints) compareSpeed(each);
    }
    schedule(endpoint, pace.probeMs);
  }

  function compareSpeed(endpoint: Endpoint): void {
    const latencyMs = latencies.get(endpoint);
    if (latencyMs === undefined) return;
    const others = endpoints.filter((other) => other !== endpoint && isUsable(other));
    const fastestMs = Math.min(...others.map((other) => latencies.get(other) ?? Number.POSITIVE_INFINITY));
    const limitMs = Math.max(pace.slowMs, slowFactor * fastestMs);
    // Half the limit to become healthy again, so that it does not flap.
    endpoint.state.setSlow(latencyMs > (endpoint.state.health === "slow" ? limitMs / 2 : limitMs));
  }

  return {
    /** Called for each request: starts or continues probing. */
    wake() {
      wokenAt = now();
      for (const endpoint of endpoints) if (!timers.has(endpoint)) schedule(endpoint, 0);
    },
    /** Called when an endpoint fails: it is probed after its pause. */
    failed: (endpoint: Endpoint) => schedule(endpoint, pace.probeMs),
    stop() {
      stopped = true;
      for (const timer of timers.values()) clearTimeout(timer);
    },
  };
}
