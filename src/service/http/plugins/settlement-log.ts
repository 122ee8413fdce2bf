import fp from "fastify-plugin";
import { channels, type SettlementStep, type TransactionStep } from "../../../observe/channels/channels.ts";
import { wouldLog } from "../../../observe/log/logger.ts";

/**
 * Logs what becomes of settlements behind the requests, so that one payment can be followed by its settlement id and the
 * hash of its transaction: signed, sent, mined, settled or failed.
 */
export const logSettlements = fp<{ serviceId: string }>(async (app, { serviceId }) => {
  const { log } = app;
  if (!wouldLog(log, "info")) return;
  const subscriptions = [
    channels.transaction.subscribe((step) => {
      const message = step.serviceId === serviceId ? transactionMessages[step.step] : undefined;
      if (message !== undefined) log.info(describeTransaction(step), message);
    }),
    channels.settlement.subscribe((step) => {
      const message = step.serviceId === serviceId ? settlementMessages[step.step] : undefined;
      if (message !== undefined) log.info(describeSettlement(step), message);
    }),
  ];
  app.addHook("onClose", async () => {
    for (const unsubscribe of subscriptions) unsubscribe();
  });
});

/** Steps that come again and again until a block is deep enough have no line. */
const transactionMessages: Partial<Record<TransactionStep["step"], string>> = {
  signed: "transaction signed",
  broadcast: "transaction sent",
  concluded: "transaction mined",
};

const settlementMessages: Partial<Record<SettlementStep["step"], string>> = {
  settled: "payment settled",
  failed: "payment failed",
  reorganized: "the block of a payment has vanished",
  moved: "payment moved to another transaction",
  recovered: "payment recovered",
};

function describeTransaction(step: TransactionStep): object {
  const { network, transaction: hash } = step;
  switch (step.step) {
    case "signed": {
      const { purpose: kind, operator, txNonce, settlementIds: settlements } = step;
      return { network, hash, kind, operator, txNonce, settlements };
    }
    case "concluded":
      return { network, hash, block: Number(step.blockNumber) };
    default:
      return { network, hash };
  }
}

function describeSettlement(step: SettlementStep): object {
  const { settlementId: settlement } = step;
  switch (step.step) {
    case "settled":
    case "recovered":
      return { settlement, hash: step.transaction };
    case "failed":
      return { settlement, hash: step.transaction, failure: step.failure };
    default:
      return { settlement };
  }
}
