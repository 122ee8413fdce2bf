import { setTimeout as delay } from "node:timers/promises";
import { UndeterminedError } from "../../util/errors.ts";
import { chainIdCall, headCall } from "./calls.ts";
import { type Answers, createEndpoint, type Endpoint, type HighestHead, isUsable } from "./endpoint.ts";
import { EndpointFailure, type RpcObserver } from "./endpoint-state.ts";
import { createRedactor, type Question, type RpcCall } from "./rpc.ts";

/** When an endpoint is passed over for another. For a network's only endpoint `longestPauseMs` alone counts. */
export type FailoverPace = {
  /** The longest that a request waits for one endpoint while there is another to ask. */
  passOverMs: number;
  /** Between two probes of an endpoint that is not failing. */
  probeMs: number;
  /** Before a failing endpoint is probed; doubles with each failure that follows. */
  firstPauseMs: number;
  /** The longest that an endpoint is left alone, whatever its Retry-After says. */
  longestPauseMs: number;
  /**
   * How long after a failure an endpoint is not asked by itself. Much shorter than the longest pause: payments wait for its
   * word, and nobody else can give it.
   */
  askAgainMs: number;
  /** After so long without a question, probing rests until the next one. */
  restAfterMs: number;
  /** An endpoint whose answers take longer than this, and several times as long as another's, is slow. */
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
  /** Before a failed read is tried again at the only endpoint. */
  retryDelayMs: number;
  pace: FailoverPace;
  observer: RpcObserver;
};

/** The longest that a read waits for the end of a Retry-After where there is no other endpoint to ask. */
const longestWaitMs = 2_000;

/**
 * The endpoints of a network, as one that works while any of them does. Chooses among them: the first in the order of
 * the configuration that is well. What is not well is passed over, and comes back when an answer, mostly to a probe, finds
 * it well again.
 *
 * A single endpoint is neither checked nor probed: there is nothing to compare it with, every question to it is a
 * probe, and a harness may turn its chain back. Only a rate limit with Retry-After makes it rest.
 */
export function createFailover(options: FailoverOptions) {
  const { network, chainId, urls, timeoutMs, retryDelayMs, pace, observer } = options;
  const several = urls.length > 1;
  const now = () => performance.now();
  const closing = new AbortController();
  const redact = createRedactor(urls);
  /** For one endpoint, while there is another to ask. */
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
      // A node that was given its time gets no second helping.
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
    /** @throws UndeterminedError when none of them gave an answer that can be used. */
    async read(questions: readonly Question[], refused: number): Promise<Answers> {
      prober?.wake();
      const [only] = endpoints;
      return several || only === undefined ? readFromAny(questions, refused) : readFromOnly(only, questions);
    },

    /**
     * Reads from this endpoint alone.
     *
     * @throws UndeterminedError when it gave no answer that can be used, and at once soon after it failed.
     */
    async readAt(endpoint: Endpoint, questions: readonly Question[]): Promise<Answers> {
      prober?.wake();
      if (!several) return readFromOnly(endpoint, questions);
      const { state } = endpoint;
      // The pause of one that comes and goes has grown to a minute, in which it may long be well again.
      const askAgainAt = Math.min(state.pausedUntil, state.failedAt + pace.askAgainMs);
      const isLeftAlone = endpoint.rank === undefined || (!isUsable(endpoint) && askAgainAt > now());
      const answers = isLeftAlone
        ? new EndpointFailure("connection", endpoint.state.detail ?? "is left alone")
        : ((await waitFor(endpoint, closing.signal)) ?? (await endpoint.read("read", questions, passOverMs)));
      if (answers instanceof EndpointFailure) throw undetermined([[endpoint, answers]]);
      return answers;
    },

    /** All of them: those that may be asked in the order in which a read asks them, then those of another chain. */
    all: (): readonly Endpoint[] => [...new Set([...routeOf(endpoints), ...endpoints])],

    /**
     * Sends the batches in the given order: to one endpoint at first, and to the next only when it gave no answer. Every
     * endpoint that sees a payment before it is mined could submit it to the token by itself, and each costs a request.
     * One that answers and then drops what it got is met by sending everywhere, which is for what has not been mined
     * after a while. Either way they are the same bytes, of which the chain takes one copy, however many nodes hold it. A
     * rate limit does not hold up a broadcast: a payment is waiting, and it is one request.
     *
     * @throws UndeterminedError when none of the endpoints answered all of them.
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

/** An endpoint that was asked, and what came of it. */
type Failed = readonly [Endpoint, EndpointFailure];

/** Which endpoints to ask, one after the other. The last ones are hardly worth a try, but better than giving up. */
function routeOf(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  if (endpoints.length <= 1) return endpoints;
  const ranked = endpoints.filter(({ rank }) => rank !== undefined);
  return ranked.sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0));
}

/** The route for calls that were refused before: once may be chance, then it is another endpoint's turn. */
function turnedBy(refused: number, usual: readonly Endpoint[]): readonly Endpoint[] {
  if (refused < 2) return usual;
  const skipped = (refused - 1) % usual.length;
  return [...usual.slice(skipped), ...usual.slice(0, skipped)];
}

/** Waits, at least `leastMs`, until an endpoint may be read from; a failure, at once, when that takes too long. */
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
  // It rejects when everything is closed, which the next request will notice.
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
 * It never goes down while any endpoint confirms it, so that no answer is based on a chain that is older than that of
 * an answer before. It is forgotten `rememberMs` after it was last seen, because there is a chain that did go back:
 * one that was reset, or rolled back by its operators.
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

/** A sign of an endpoint's health. */
const probeCalls: readonly RpcCall[] = [chainIdCall, headCall];

/** How many times as long as another's the answers of a slow endpoint take. */
const slowFactor = 4;

/**
 * Asks every endpoint of a network, now and then, how it is. Each endpoint has a timer of its own, which keeps no
 * process alive. The probe is the same for all of them, so that the time it takes can be compared: what takes several
 * times as long as at another endpoint is slow.
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
    // Timers end up to a millisecond early, and what fails within the pause does not lengthen it.
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
    // Half of what made it slow, so that it does not go to and fro.
    endpoint.state.setSlow(latencyMs > (endpoint.state.health === "slow" ? limitMs / 2 : limitMs));
  }

  return {
    /** A question came in: probing goes on, or begins. */
    wake() {
      wokenAt = now();
      for (const endpoint of endpoints) if (!timers.has(endpoint)) schedule(endpoint, 0);
    },
    /** An endpoint failed: it is probed when its pause is over. */
    failed: (endpoint: Endpoint) => schedule(endpoint, pace.probeMs),
    stop() {
      stopped = true;
      for (const timer of timers.values()) clearTimeout(timer);
    },
  };
}
