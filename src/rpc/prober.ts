import { type Candidate, isUsable } from "./candidate.ts";
import { chainIdCall } from "./chain-id.ts";
import { EndpointFailure } from "./endpoint.ts";
import type { FailoverPace } from "./failover-pace.ts";
import { headCall } from "./head.ts";
import type { RpcCall } from "./rpc.ts";

/** What shows how an endpoint is. */
export const probeCalls: readonly RpcCall[] = [chainIdCall, headCall];

/** Asks every endpoint of a network, now and then, how it is. */
export type Prober = {
  /** Somebody needs the endpoints: probing goes on from here, or begins. */
  wake(): void;
  /** An endpoint failed: it is looked at when its pause is over. */
  failed(candidate: Candidate): void;
  stop(): void;
};

/** How many times as long as another's the answers of a slow endpoint take. */
const slowFactor = 4;

/**
 * Each endpoint has a timer of its own, which keeps no process alive. The probe is the same for all of them, so that
 * the time it takes can be compared: what takes several times as long as at another endpoint is slow.
 */
export function createProber(options: {
  candidates: readonly Candidate[];
  pace: FailoverPace;
  /** The longest that a probe takes. */
  timeoutMs: number;
  now: () => number;
}): Prober {
  const { candidates, pace, timeoutMs, now } = options;
  const timers = new Map<Candidate, NodeJS.Timeout>();
  const latencies = new Map<Candidate, number>();
  let wokenAt = now();
  let stopped = false;

  function schedule(candidate: Candidate, afterMs: number): void {
    if (stopped) return;
    clearTimeout(timers.get(candidate));
    timers.set(candidate, setTimeout(() => void probe(candidate), afterMs).unref());
  }

  function scheduleNext(candidate: Candidate): void {
    const pauseMs = candidate.state.pausedUntil - now();
    schedule(candidate, pauseMs > 0 ? pauseMs : pace.probeMs);
  }

  async function probe(candidate: Candidate): Promise<void> {
    if (now() - wokenAt > pace.restAfterMs) {
      timers.delete(candidate);
      return;
    }
    const sentAt = now();
    const answers = await candidate.read("probe", probeCalls, timeoutMs);
    if (!(answers instanceof EndpointFailure)) {
      const takenMs = now() - sentAt;
      latencies.set(candidate, ((latencies.get(candidate) ?? takenMs) + takenMs) / 2);
      for (const each of candidates) compareSpeed(each);
    }
    scheduleNext(candidate);
  }

  function compareSpeed(candidate: Candidate): void {
    const latencyMs = latencies.get(candidate);
    if (latencyMs === undefined) return;
    const others = candidates.filter((other) => other !== candidate && isUsable(other));
    const fastestMs = Math.min(...others.map((other) => latencies.get(other) ?? Number.POSITIVE_INFINITY));
    const limitMs = Math.max(pace.slowMs, slowFactor * fastestMs);
    // Half of what made it slow, so that it does not go to and fro.
    const isSlow = latencyMs > (candidate.state.health === "slow" ? limitMs / 2 : limitMs);
    const why = `takes ${Math.round(latencyMs)} ms to answer, another endpoint ${Math.round(fastestMs)} ms`;
    candidate.state.setSlow(isSlow ? why : undefined);
  }

  return {
    wake() {
      wokenAt = now();
      for (const candidate of candidates) {
        if (!timers.has(candidate)) schedule(candidate, Math.max(0, candidate.state.pausedUntil - now()));
      }
    },
    failed: scheduleNext,
    stop() {
      stopped = true;
      for (const timer of timers.values()) clearTimeout(timer);
    },
  };
}
