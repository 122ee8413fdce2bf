import type { Chain } from "../chain/chain.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { WithdrawalLogs } from "../methods/on-chain/settling.ts";
import { channels } from "../observe/channels/channels.ts";
import type { ServiceLog } from "../observe/log/logger.ts";
import type { Metrics } from "../observe/metrics/metrics.ts";
import { UndeterminedError } from "../util/errors.ts";
import { self } from "../util/self-command.ts";
import { sleep } from "../util/waiting.ts";

/** Watches for payers who announce a withdrawal from a channel: what its shop has not claimed by then is lost. */
export type WithdrawalWatch = {
  start(): void;
  /** Does not wait for a request in progress. */
  stop(): void;
};

/** Blocks between two checks. The shortest withdrawal delay is 15 minutes. */
const lookEveryBlocks = 15;

/** How far back the first check goes, in milliseconds: withdrawals may have been announced while no instance was running. */
const firstLookMs = 60 * 60 * 1000;

export function createWithdrawalWatch({
  chain,
  logs,
  ledger,
  metrics,
  log,
  serviceId,
}: {
  chain: Pick<Chain, "network" | "head" | "readLogs">;
  logs: WithdrawalLogs;
  ledger: Pick<Ledger, "channels">;
  metrics: Pick<Metrics, "withdrawal">;
  log: ServiceLog;
  serviceId: string;
}): WithdrawalWatch {
  const { name, chainId, blockTimeMs, confirmations } = chain.network;
  const stopping = new AbortController();
  let seen: bigint | undefined;

  async function look(): Promise<void> {
    // Saves the requests if no shop here has channels.
    if (!(await ledger.channels.hasAny(chainId))) return;
    const { number: head } = await chain.head();
    // Blocks that are not deep enough may have been replaced.
    const back = seen === undefined ? firstLookMs / blockTimeMs : confirmations;
    const from = (seen ?? head) - BigInt(Math.ceil(back));
    for await (const found of chain.readLogs([logs.filter], from > 0n ? from : 0n, head)) {
      for (const entry of found) {
        const announced = logs.read(entry);
        if (announced !== undefined) await note(announced);
      }
    }
    seen = head;
  }

  /** Records a withdrawal; only the first instance that sees it reports it. */
  async function note({ channel: id, ...withdrawal }: NonNullable<ReturnType<WithdrawalLogs["read"]>>) {
    const channel = await ledger.channels.noteWithdrawal(chainId, id, withdrawal);
    if (channel === null) return;
    const { organizationId, payer } = channel;
    const { amount, endsAt } = withdrawal;
    metrics.withdrawal(name);
    channels.withdrawal.publish(() => ({
      kind: "withdrawal",
      at: Date.now(),
      serviceId,
      network: name,
      channel: id,
      organizationId,
      payer,
      amount,
      endsAt,
    }));
    const until = new Date(endsAt * 1_000).toISOString();
    const about = { network: name, channel: id, organization: organizationId, amount: `${amount}`, until };
    log.warn(about, `a payer withdraws from a channel: its shop should claim before. ${self} channels show`);
  }

  async function watch(): Promise<void> {
    for (;;) {
      await sleep(lookEveryBlocks * blockTimeMs, stopping.signal);
      if (stopping.signal.aborted) return;
      try {
        await look();
      } catch (error) {
        if (stopping.signal.aborted) return;
        if (error instanceof UndeterminedError)
          log.debug({ network: name, err: error }, "looking again later");
        else log.error({ network: name, err: error }, "withdrawals from channels could not be looked for");
      }
    }
  }

  return {
    start: () => void watch(),
    stop: () => stopping.abort(),
  };
}
