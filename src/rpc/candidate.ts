import { chainIdCall, readChainId } from "./chain-id.ts";
import { type Answers, type Endpoint, EndpointFailure } from "./endpoint.ts";
import type { EndpointState } from "./endpoint-state.ts";
import type { Head } from "./head.ts";
import { headCall, readHead } from "./head.ts";
import type { HighestHead } from "./highest-head.ts";
import type { RpcCall } from "./rpc.ts";
import type { EndpointStatus } from "./rpc-status.ts";

/** How soon a candidate is asked: the lower, the sooner. */
export const rank = { well: 0, slow: 1, unwell: 2, held: 3 } as const;

/** An endpoint among others that may be asked instead. */
export type Candidate = {
  readonly label: string;
  readonly state: EndpointState;
  /** One of {@link rank}; undefined for one that must not be asked. */
  readonly rank: number | undefined;
  /** Milliseconds for which it still wants to be left alone; 0 or less when it does not. */
  readonly retryAfterMs: number;
  read(
    purpose: "read" | "probe",
    calls: readonly RpcCall[],
    timeoutMs?: number,
  ): Promise<Answers | EndpointFailure>;
  /** Sends the batches one after the other; undefined when all of them were answered. */
  send(batches: readonly (readonly RpcCall[])[], timeoutMs?: number): Promise<EndpointFailure | undefined>;
  status(): Omit<EndpointStatus, "inUse">;
  close(): void;
};

/** Whether nothing worse is wrong with a candidate than that it is slow. */
export function isUsable({ rank: own }: Candidate): boolean {
  return own !== undefined && own <= rank.slow;
}

export type CandidateOptions = {
  endpoint: Endpoint;
  state: EndpointState;
  now: () => number;
  /** What its answers are measured by; undefined for one that nobody stands in for. */
  checkedAgainst: { chainId: number; maxLagBlocks: bigint; highest: HighestHead } | undefined;
  /** Called after every failure. */
  failed: (candidate: Candidate) => void;
};

/** What goes beside the calls of a batch, so that the answers can be judged: the newest block and the chain id. */
export const extraCalls = 2;

/**
 * Judges what an endpoint answers. Every read also asks for the newest block, in the same request, and counts only
 * when that block is not far behind the highest one that was seen before the request went out. Until the endpoint
 * has named the right chain, it is asked for that too.
 */
export function createCandidate(options: CandidateOptions): Candidate {
  const { endpoint, state, now, checkedAgainst, failed } = options;
  let chainId: number | undefined;
  let head: (Head & { seenAt: number }) | undefined;
  let closed = false;
  const closure = new EndpointFailure("connection", "closed");

  function withProof(calls: readonly RpcCall[]): readonly RpcCall[] {
    if (checkedAgainst === undefined) return calls;
    const asked = new Set(calls).add(headCall);
    if (chainId !== checkedAgainst.chainId) asked.add(chainIdCall);
    return [...asked];
  }

  function note(answers: Answers): void {
    chainId = readChainId(answers.get(chainIdCall)?.result) ?? chainId;
    const newest = readHead(answers.get(headCall)?.result);
    if (newest !== undefined) head = { ...newest, seenAt: Date.now() };
  }

  /** What is wrong with answers to a request that went out when the highest block known was `floor`. */
  function judge(answers: Answers, floor: bigint | undefined): EndpointFailure | undefined {
    note(answers);
    if (checkedAgainst === undefined) return undefined;
    if (chainId === undefined) return new EndpointFailure("malformed", "does not say which chain it serves");
    if (chainId !== checkedAgainst.chainId) {
      return new EndpointFailure("wrong_chain", `serves chain ${chainId}, not ${checkedAgainst.chainId}`);
    }
    const newest = readHead(answers.get(headCall)?.result)?.number;
    // A node between two blocks may not know its newest one: nothing is known against its other answers then.
    if (newest === undefined) return undefined;
    const behind = (floor ?? newest) - newest;
    if (behind > checkedAgainst.maxLagBlocks) {
      return new EndpointFailure("lagging", `is ${behind} blocks behind, at ${newest}`);
    }
    checkedAgainst.highest.saw(newest);
    return undefined;
  }

  function noteFailure(failure: EndpointFailure, sentAt: number): EndpointFailure {
    if (closed) return closure;
    state.failed(failure, sentAt);
    failed(candidate);
    return failure;
  }

  const candidate: Candidate = {
    label: endpoint.label,
    state,

    get rank() {
      switch (state.health) {
        case "untried":
        case "healthy":
          return rank.well;
        case "slow":
          return rank.slow;
        case "wrong_chain":
          return undefined;
        default:
          return state.heldUntil > now() ? rank.held : rank.unwell;
      }
    },

    get retryAfterMs() {
      return state.heldUntil - now();
    },

    async read(purpose, calls, timeoutMs) {
      if (closed) return closure;
      const sentAt = now();
      // Blocks that others show while this request is under way are not held against it.
      const floor = checkedAgainst?.highest.number();
      const answers = await endpoint.exchange(purpose, withProof(calls), timeoutMs, (answers) =>
        judge(answers, floor),
      );
      if (answers instanceof EndpointFailure) return noteFailure(answers, sentAt);
      state.passed(sentAt);
      return answers;
    },

    async send(batches, timeoutMs) {
      for (const batch of batches) {
        if (closed) return closure;
        const sentAt = now();
        const answers = await endpoint.exchange("send", batch, timeoutMs);
        if (answers instanceof EndpointFailure) return noteFailure(answers, sentAt);
      }
      return undefined;
    },

    status: () => ({
      label: endpoint.label,
      health: state.health,
      detail: state.detail,
      since: Math.round(performance.timeOrigin + state.since),
      head: head && { number: head.number, timestamp: head.timestamp, seenAt: head.seenAt },
      chainId,
      latencyMs: endpoint.latencyMs,
      requests: { ...endpoint.requests },
      errors: { ...endpoint.errors },
    }),

    close() {
      closed = true;
      endpoint.close();
    },
  };
  return candidate;
}
