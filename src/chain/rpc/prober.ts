import { chainIdCall, headCall } from "./calls.ts";
import { type Endpoint, isUsable } from "./endpoint.ts";
import { EndpointFailure } from "./endpoint-state.ts";
import type { RpcCall } from "./rpc.ts";

/** What shows how an endpoint is. */
export const probeCalls: readonly RpcCall[] = [chainIdCall, headCall];

/** Asks every endpoint of a network, now and then, how it is. */
export type Prober = {
  /** A question came in: probing goes on, or begins. */
  wake(): void;
  /** An endpoint failed: it is probed when its pause is over. */
  failed(endpoint: Endpoint): void;
  stop(): void;
};

/** How many times as long as another's the answers of a slow endpoint take. */
const slowFactor = 4;

/**
 * Each endpoint has a timer of its own, which keeps no process alive. The probe is the same for all of them, so that
 * the time it takes can be compared: what takes several times as long as at another endpoint is slow.
 */
export function createProber(options: {
  endpoints: readonly Endpoint[];
  pace: { probeMs: number; restAfterMs: number; slowMs: number };
  /** The longest that a probe takes. */
  timeoutMs: number;
  now: () => number;
}): Prober {
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
    const isSlow = latencyMs > (endpoint.state.health === "slow" ? limitMs / 2 : limitMs);
    const why = `takes ${Math.round(latencyMs)} ms to answer, another endpoint ${Math.round(fastestMs)} ms`;
    endpoint.state.setSlow(isSlow ? why : undefined);
  }

  return {
    wake() {
      wokenAt = now();
      for (const endpoint of endpoints) if (!timers.has(endpoint)) schedule(endpoint, 0);
    },
    failed: (endpoint) => schedule(endpoint, pace.probeMs),
    stop() {
      stopped = true;
      for (const timer of timers.values()) clearTimeout(timer);
    },
  };
}
