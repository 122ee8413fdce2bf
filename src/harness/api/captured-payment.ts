import { setTimeout as sleep } from "node:timers/promises";
import { recordedVerdict } from "../../observe/capture/replay.ts";
import type { SettleAnswer, VerifyAnswer } from "../../protocol/answers.ts";
import type { JournalRequest } from "../journal/payment-journal.ts";
import type { Harness, PaymentRequestBody, ServiceAnswer } from "./harness-api.ts";
import type { CaptureSource } from "./read-capture-option.ts";

/** The payment that a harness was made of, by the option `capture`. */
export type CapturedPayment = {
  /** What it was asked for. */
  readonly operation: "verify" | "settle";
  /** The body of the request. */
  readonly request: PaymentRequestBody;
  /** How it was judged then: `valid`, or the invalid reason. Undefined where there was no verdict. */
  readonly verdict: string | undefined;
  /** Sends it to the facilitator of the harness, as it was sent then. Gives the verdict of now, in the same words. */
  replay(): Promise<CapturedReplay>;
};

/** What became of a captured payment that was sent again. */
export type CapturedReplay = {
  /** As in {@link CapturedPayment.verdict}: the reason itself, of which an answer to a v1 settle names only the kind. */
  readonly verdict: string | undefined;
  readonly answer: ServiceAnswer<VerifyAnswer> | ServiceAnswer<SettleAnswer>;
};

/** An answer is in the journal a moment after it was written. */
const journalWait = { timeoutMs: 5_000, pollMs: 5 };

/** What a harness that was made of a capture says of it. */
export function describeCaptured(
  { capture, settlementId }: CaptureSource,
  harness: Pick<Harness, "verify" | "settle" | "journal">,
): CapturedPayment {
  const { operation, request } = capture;
  const requests = async (): Promise<readonly JournalRequest[]> =>
    (await harness.journal.payments()).includes(settlementId)
      ? ((await harness.journal.payment(settlementId))?.requests ?? [])
      : [];

  async function newestAfter(count: number): Promise<JournalRequest | undefined> {
    const until = performance.now() + journalWait.timeoutMs;
    for (;;) {
      const all = await requests();
      if (all.length > count || performance.now() > until) return all.at(-1);
      await sleep(journalWait.pollMs);
    }
  }

  return {
    operation,
    request,
    verdict: recordedVerdict(capture),
    async replay() {
      const before = (await requests()).length;
      const answer = await harness[operation](request);
      const ended = await newestAfter(before);
      return { answer, verdict: ended && recordedVerdict({ ...ended, reason: ended.reason ?? null }) };
    },
  };
}
