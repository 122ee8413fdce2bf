import type { TimelineEntry } from "../studio/payment-view.ts";
import { type Entry, type PaymentRecord, requestIdOf } from "./record.ts";

/** So many lines of a payment are shown, the newest; those before are counted. */
const mostLines = 300;

/** What happened to a payment, line by line. */
export function linesOf({ entries, omitted }: Pick<PaymentRecord, "entries" | "omitted">): {
  timeline: TimelineEntry[];
  omitted: number;
} {
  const lines = entries.flatMap((entry): TimelineEntry[] => {
    const common = { at: entry.at, ok: true, tookMs: null, requestId: requestIdOf(entry) };
    return describe(entry).map((line) => ({ ...common, ...line }));
  });
  const timeline = lines.slice(-mostLines);
  return { timeline, omitted: omitted + lines.length - timeline.length };
}

type Line = Pick<TimelineEntry, "kind" | "title" | "details"> & Partial<TimelineEntry>;

function describe(entry: Entry): Line[] {
  switch (entry.kind) {
    case "request": {
      const { operation, requestId } = entry;
      return [{ kind: "request", title: `POST /v1/${operation}`, details: { requestId } }];
    }
    case "checks":
      return entry.checks.map(({ check, refusal }) => {
        const { reason, situation, message } = refusal ?? {};
        const details = facts({ reason, situation, message });
        return { kind: "check", title: check, ok: refusal === undefined, details };
      });
    case "answer": {
      const { operation, result, status, tookMs } = entry;
      const { outcome, reason, situation, message, transaction } = result;
      const ok = outcome === "valid" || outcome === "settled";
      const details = facts({ status, reason, situation, message, transaction });
      return [{ kind: "answer", title: `${operation}: ${outcome}`, ok, tookMs, details }];
    }
    case "unrouted": {
      const { method, path, status, message } = entry;
      return [{ kind: "answer", title: `${method} ${path}`, ok: false, details: { status, message } }];
    }
    case "delivery":
      return [
        { kind: "delivery", title: `answer ${entry.fate}`, ok: entry.fate === "delivered", details: {} },
      ];
    case "settlement": {
      const { kind: _, at: __, serviceId: ___, settlementId: ____, step, ...rest } = entry;
      const ok = step !== "failed" && step !== "reorganized" && step !== "recoveryPostponed";
      return [{ kind: "ledger", title: step, ok, details: facts(rest) }];
    }
    case "transaction":
      return [describeTransaction(entry)];
    case "rpc": {
      const { endpoint, methods, durationMs: tookMs, error } = entry;
      const details = facts({ endpoint, error });
      return [{ kind: "rpc", title: methods.join(", "), ok: error === undefined, tookMs, details }];
    }
    case "fault": {
      const { fault, methods } = entry;
      const details = methods.length === 0 ? {} : { methods: methods.join(", ") };
      return [{ kind: "fault", title: fault, ok: false, details }];
    }
    case "clock":
      return [];
  }
}

function describeTransaction(entry: Extract<Entry, { kind: "transaction" }>): Line {
  const { step, transaction } = entry;
  const line = { kind: "transaction", title: step } as const;
  switch (entry.step) {
    case "signed": {
      const { purpose: kind, operator, txNonce, maxFeePerGas, maxPriorityFeePerGas, settlementIds } = entry;
      const payments = settlementIds.length;
      const details = { transaction, kind, operator, txNonce, maxFeePerGas, maxPriorityFeePerGas, payments };
      return { ...line, details: facts(details) };
    }
    case "broadcast": {
      const to = entry.everywhere ? "every endpoint" : "one endpoint";
      return { ...line, details: { transaction, to } };
    }
    case "receipt": {
      const { succeeded, blockNumber, blockHash } = entry;
      const details = facts({ transaction, succeeded, blockNumber, blockHash });
      return { ...line, ok: succeeded, details };
    }
    case "concluded":
      return { ...line, details: facts({ transaction, blockNumber: entry.blockNumber }) };
  }
}

/** What can be shown of a message: texts, numbers and flags; big numbers as decimal text. */
function facts(values: Record<string, unknown>): Record<string, string | number | boolean> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => {
      if (typeof value === "bigint") return [[name, value.toString()]];
      return typeof value === "string" || typeof value === "number" || typeof value === "boolean"
        ? [[name, value]]
        : [];
    }),
  );
}
