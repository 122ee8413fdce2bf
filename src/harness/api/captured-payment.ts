import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { parsePaymentRequest } from "../../methods/methods.ts";
import { type Capture, readCapture, readPayerState, recordedVerdict } from "../../observe/capture/capture.ts";
import type { SettleAnswer, VerifyAnswer } from "../../protocol/answers.ts";
import type { Address, Hex } from "../../protocol/hex.ts";
import type { NetworkRegistry } from "../../protocol/networks.ts";
import { KitError } from "../../util/errors.ts";
import { jsonObject, requireArgument } from "../../util/given.ts";
import type { JournalRequest } from "../journal/journal.ts";
import type { CapturedSlice } from "../setup/captured-slice.ts";
import type { Harness, PaymentRequestBody, ServiceAnswer } from "./harness-api.ts";

/** The payment that a harness was made of, by the option `capture`. */
export type CapturedPayment = {
  /** The request. */
  readonly operation: "verify" | "settle";
  /** The body of the request. */
  readonly request: PaymentRequestBody;
  /** How it was judged then: `valid`, or the invalid reason. Undefined where there was no verdict. */
  readonly verdict: string | undefined;
  /** Sends it to the facilitator of the harness, as it was sent then. Gives the verdict of now, in the same words. */
  replay(): Promise<CapturedReplay>;
};

/** The outcome of a captured payment that was sent again. */
export type CapturedReplay = {
  /** As in {@link CapturedPayment.verdict}: the reason itself, of which an answer to a v1 settle names only the kind. */
  readonly verdict: string | undefined;
  readonly answer: ServiceAnswer<VerifyAnswer> | ServiceAnswer<SettleAnswer>;
};

/** An answer is in the journal a moment after it was written. */
const journalWait = { timeoutMs: 5_000, pollMs: 5 };

/** The judgment of a capture by the harness made from it. */
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

/** A payment that was captured, as a harness needs it. */
export type CaptureSource = {
  capture: Capture;
  settlementId: Hex;
  slice: CapturedSlice;
  contracts: { mainnet?: Address; testnet?: Address };
};

/**
 * Reads the option `capture` of a harness: the path of a file, or what is in it.
 *
 * @throws {ConfigurationError} when it is not even JSON
 * @throws {KitError} with one sentence when it cannot be used
 */
export function readCaptureOption(option: string | Capture, known: NetworkRegistry): CaptureSource {
  if (typeof option !== "string") requireArgument("capture", option, jsonObject);
  const capture = readCapture(typeof option === "string" ? readText(option) : JSON.stringify(option));
  const { chain, request: body } = capture;
  const network = known.named(chain.network);
  if (network === undefined) {
    throw new KitError(
      `The captured payment is of ${chain.network}, which is not one of ${known.names.join(", ")}`,
      {
        hints: ["Networks besides the five come with `networkFile`."],
      },
    );
  }
  const parsed = parsePaymentRequest(body, known);
  if (!parsed.ok) throw new KitError(`The captured payment cannot be read: ${parsed.invalid.message}`);
  const { payer, nonce } = parsed.request.payment;
  return {
    capture,
    contracts: { [network.tier]: chain.facilitatorContract },
    settlementId: parsed.request.settlementId,
    slice: {
      payer,
      nonce,
      blockNumber: chain.blockNumber,
      time: chain.time,
      ...readPayerState(chain),
      ...walletOf(capture),
    },
  };
}

/** Where the signature is cut, a wallet stands in for the payer, which accepts any. */
function walletOf({ chain, signature, signatureRefusal }: Capture) {
  const { payerHasCode, walletAccepts } = chain;
  const isCut = signature === "cut" && signatureRefusal === null;
  return {
    payerHasCode: payerHasCode || isCut,
    walletAccepts: isCut || (walletAccepts ?? false),
    isStandIn: isCut,
  };
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new KitError(`The capture ${file} cannot be read`, { cause });
  }
}
