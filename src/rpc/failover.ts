import { setTimeout as delay } from "node:timers/promises";
import { UndeterminedError } from "../errors.ts";
import { type Candidate, createCandidate, isUsable } from "./candidate.ts";
import { type Answers, createEndpoint, EndpointFailure } from "./endpoint.ts";
import { createEndpointState } from "./endpoint-state.ts";
import type { FailoverPace } from "./failover-pace.ts";
import { createHighestHead } from "./highest-head.ts";
import { createProber, probeCalls } from "./prober.ts";
import { createRedactor } from "./redact.ts";
import type { RpcCall } from "./rpc.ts";
import type { RpcObserver, RpcStatus } from "./rpc-status.ts";

export type FailoverOptions = {
  network: string;
  chainId: number;
  /** In order of preference. */
  urls: readonly URL[];
  /** The longest that a request takes. */
  timeoutMs: number;
  /** Before a failed read is tried again at the only endpoint. */
  retryDelayMs: number;
  pace: FailoverPace;
  observer: RpcObserver;
};

/** The endpoints of a network, as one that works while any of them does. */
export type Failover = {
  /** @throws UndeterminedError when none of them gave an answer that can be used. */
  read(calls: readonly RpcCall[], refused: number): Promise<Answers>;
  /**
   * Sends the batches in the given order.
   *
   * @throws UndeterminedError when none of the endpoints answered all of them.
   */
  send(batches: readonly (readonly RpcCall[])[], options: { everywhere: boolean }): Promise<void>;
  status(): RpcStatus;
  /** Asks every endpoint how it is. */
  probe(): Promise<RpcStatus>;
  close(): void;
};

/** The longest that a read waits for the end of a Retry-After where there is nobody else to ask. */
const longestWaitMs = 2_000;

/**
 * Chooses among the endpoints of a network: the first in the order of the configuration that is well. What is not
 * well is passed over, and comes back when an answer, mostly to a probe, finds it well again.
 *
 * A single endpoint is neither judged nor probed: there is nothing to compare it with, every question to it is a
 * probe, and a harness may turn its chain back. Only a rate limit with Retry-After makes it rest.
 */
export function createFailover(options: FailoverOptions): Failover {
  const { network, chainId, urls, timeoutMs, retryDelayMs, pace, observer } = options;
  const several = urls.length > 1;
  const now = () => performance.now();
  const closing = new AbortController();
  const redact = createRedactor(urls);
  /** For one endpoint, while there is another to ask. */
  const passOverMs = Math.min(pace.passOverMs, timeoutMs);
  const highest = createHighestHead({ now, rememberMs: pace.rememberHeadMs });
  const checkedAgainst = several ? { chainId, maxLagBlocks: pace.maxLagBlocks, highest } : undefined;

  const candidates = urls.map((url, index): Candidate => {
    const label = `${index + 1}`;
    return createCandidate({
      endpoint: createEndpoint({ label, url, timeoutMs, redact, exchanged: observer.exchanged }),
      state: createEndpointState({
        now,
        firstPauseMs: pace.firstPauseMs,
        longestPauseMs: pace.longestPauseMs,
        changed: (from, { health, detail }) =>
          observer.healthChanged?.({ endpoint: label, from, to: health, detail }),
      }),
      now,
      checkedAgainst,
      failed: (candidate) => prober?.failed(candidate),
    });
  });
  const prober = several ? createProber({ candidates, pace, timeoutMs: passOverMs, now }) : undefined;

  /** Whom to ask, one after the other. The last ones are hardly worth a try, but better than giving up. */
  function route(): readonly Candidate[] {
    if (!several) return candidates;
    const ranked = candidates.filter((candidate) => candidate.rank !== undefined);
    return ranked.sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0));
  }

  /** The route for calls that were refused before: once may be chance, then it is somebody else's turn. */
  function routeAfter(refused: number): readonly Candidate[] {
    const usual = route();
    if (refused < 2) return usual;
    const skipped = (refused - 1) % usual.length;
    return [...usual.slice(skipped), ...usual.slice(0, skipped)];
  }

  /** How long to wait before a candidate is read from; a failure when that is too long. */
  function holdOf({ retryAfterMs }: Candidate): number | EndpointFailure {
    if (retryAfterMs <= longestWaitMs) return Math.max(0, retryAfterMs);
    const seconds = Math.ceil(retryAfterMs / 1_000);
    return new EndpointFailure("rate_limited", `wants to be left alone for another ${seconds} s`);
  }

  async function pause(ms: number): Promise<void> {
    // It rejects when everything is closed, which the next request will notice.
    if (ms > 0) await delay(ms, undefined, { signal: closing.signal }).catch(() => {});
  }

  async function readFromOnly(only: Candidate, calls: readonly RpcCall[]): Promise<Answers> {
    for (let attempt = 1; ; attempt++) {
      const hold = holdOf(only);
      if (hold instanceof EndpointFailure) throw undetermined([[only, hold]]);
      await pause(attempt === 1 ? hold : Math.max(hold, retryDelayMs));
      const answers = await only.read("read", calls);
      if (!(answers instanceof EndpointFailure)) return answers;
      // A node that was given its time gets no second helping.
      const isLast = attempt === 2 || answers.kind === "timeout" || only.retryAfterMs > longestWaitMs;
      if (isLast) throw undetermined([[only, answers]]);
    }
  }

  async function readFromAny(calls: readonly RpcCall[], refused: number): Promise<Answers> {
    const failures: [Candidate, EndpointFailure][] = [];
    const turns = routeAfter(refused);
    for (const [turn, candidate] of turns.entries()) {
      const hold = holdOf(candidate);
      if (hold instanceof EndpointFailure) {
        failures.push([candidate, hold]);
        continue;
      }
      await pause(hold);
      const answers = await candidate.read("read", calls, turn < turns.length - 1 ? passOverMs : timeoutMs);
      if (!(answers instanceof EndpointFailure)) return answers;
      failures.push([candidate, answers]);
    }
    throw undetermined(failures);
  }

  function undetermined(failures: readonly (readonly [Candidate, EndpointFailure])[]): UndeterminedError {
    const told = ({ label }: Candidate, what: string) =>
      `RPC endpoint ${label} of ${candidates.length} of ${network}: ${what}`;
    const excluded = candidates.filter((candidate) => candidate.rank === undefined);
    const hints = [
      ...failures.map(([candidate, { message }]) => told(candidate, message)),
      ...excluded
        .filter((candidate) => !failures.some(([tried]) => tried === candidate))
        .map((candidate) => told(candidate, candidate.state.detail ?? "")),
    ];
    const cause = new Error(failures.at(-1)?.[1].message ?? "every endpoint serves another chain");
    return new UndeterminedError(`${network} could not be reached; try again`, { cause, hints });
  }

  function status(): RpcStatus {
    const [first] = route();
    return { endpoints: candidates.map((each) => ({ ...each.status(), inUse: each === first })) };
  }

  return {
    async read(calls, refused) {
      prober?.wake();
      const [only] = candidates;
      return several || only === undefined ? readFromAny(calls, refused) : readFromOnly(only, calls);
    },

    /*
     * One endpoint at first, and the next only when it gave no answer: every endpoint that sees a payment before
     * it is mined could submit it to the token by itself, and each costs a request. One that answers and then
     * drops what it got is met by sending everywhere, which is for what has not been mined after a while. Either way
     * they are the same bytes, of which the chain takes one copy, however many nodes hold it. A rate limit does not
     * hold up a broadcast: a payment is waiting, and it is one request.
     */
    async send(batches, { everywhere }) {
      prober?.wake();
      const failures: [Candidate, EndpointFailure][] = [];
      const turns = route();
      const well = turns.filter(isUsable);
      if (everywhere && well.length > 1) {
        const sent = await Promise.all(well.map((candidate) => candidate.send(batches, passOverMs)));
        if (sent.includes(undefined)) return;
      }
      for (const [turn, candidate] of turns.entries()) {
        const failure = await candidate.send(batches, turn < turns.length - 1 ? passOverMs : timeoutMs);
        if (failure === undefined) return;
        failures.push([candidate, failure]);
      }
      throw undetermined(failures);
    },

    status,

    async probe() {
      await Promise.all(candidates.map((candidate) => candidate.read("probe", probeCalls, passOverMs)));
      return status();
    },

    close() {
      closing.abort();
      prober?.stop();
      for (const candidate of candidates) candidate.close();
    },
  };
}
