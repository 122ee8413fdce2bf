import type { Span } from "@opentelemetry/api";
import type { Hex } from "../../protocol/hex.ts";
import { createBoundedMap } from "../../util/bounded-map.ts";
import type { TransactionStep } from "../channels/channels.ts";
import { contextAfter, mostRemembered, type TraceContext } from "./tracer.ts";

type OpenTransaction = {
  readonly span: Span;
  readonly txNonce: string;
  /** The first transaction and its replacements, one of which is mined. */
  readonly hashes: Hex[];
  /** The block of the newest receipt, since a receipt is read several times. */
  block: Hex | undefined;
};

/**
 * A span for each txNonce of an operator, from signing to the block that closes it; replacements are events. It is in
 * the trace of the first payment in the transaction, with a link to every payment in it.
 */
export function createTransactionSpans(
  { api, tracer, payments }: TraceContext,
  settlementSpan: (settlementId: Hex) => Span | undefined,
) {
  const { SpanKind } = api;
  const byTxNonce = createBoundedMap<string, OpenTransaction>(mostRemembered, ({ span, hashes }) => {
    span.end();
    for (const hash of hashes) byHash.delete(hash);
  });
  const byHash = new Map<Hex, OpenTransaction>();

  function signed(step: Extract<TransactionStep, { step: "signed" }>): void {
    const { network, transaction, kind, operator, settlementIds } = step;
    const txNonce = `${network} ${operator} ${step.txNonce}`;
    const known = byTxNonce.get(txNonce);
    if (known !== undefined) {
      known.span.addEvent("replaced", {
        "x402.transaction.hash": transaction,
        "x402.transaction.kind": kind,
      });
      known.hashes.push(transaction);
      byHash.set(transaction, known);
      return;
    }
    const contexts = settlementIds.flatMap((id) => payments.get(id) ?? []);
    const span = tracer.startSpan(
      "x402.transaction",
      {
        kind: SpanKind.PRODUCER,
        attributes: {
          "x402.network": network,
          "x402.transaction.hash": transaction,
          "x402.transaction.kind": kind,
          "x402.transaction.nonce": step.txNonce,
          "x402.transaction.payments": settlementIds.length,
          "x402.operator": operator,
          "x402.gas.max_fee": `${step.maxFeePerGas}`,
        },
        links: contexts.map((context) => ({ context })),
      },
      contextAfter(api, contexts[0]),
    );
    const link = { context: span.spanContext() };
    for (const id of settlementIds) settlementSpan(id)?.addLink(link);
    const opened: OpenTransaction = { span, txNonce, hashes: [transaction], block: undefined };
    byHash.set(transaction, opened);
    byTxNonce.set(txNonce, opened);
  }

  return {
    step(step: TransactionStep): void {
      if (step.step === "signed") {
        signed(step);
        return;
      }
      const transaction = byHash.get(step.transaction);
      if (transaction === undefined) return;
      const { span } = transaction;
      if (step.step === "broadcast") {
        span.addEvent("broadcast", { "x402.transaction.hash": step.transaction });
        return;
      }
      const block = { "x402.block.number": Number(step.blockNumber) };
      if (step.step === "receipt") {
        if (step.blockHash === transaction.block) return;
        transaction.block = step.blockHash;
        span.addEvent("receipt", { ...block, "x402.transaction.succeeded": step.succeeded });
        return;
      }
      span.setAttributes({ ...block, "x402.transaction.hash": step.transaction });
      span.end();
      byTxNonce.delete(transaction.txNonce);
      for (const hash of transaction.hashes) byHash.delete(hash);
    },

    /** The span of a transaction whose txNonce is not closed yet. */
    find: (hash: Hex) => byHash.get(hash)?.span,

    close(): void {
      for (const { span } of byTxNonce.values()) span.end();
    },
  };
}
