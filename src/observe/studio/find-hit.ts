import type { PaymentRequest } from "../../protocol/requests.ts";
import type { FaultHit } from "../channels/channels.ts";
import { isAbout, marksOf } from "./payment-marks.ts";

/**
 * Which payments a fault of a connection hit, of those that it may have been: a call names its payment by the authorization
 * nonce, the signature, or the hash of a transaction. One that names none, as for the newest block, counts for all that
 * its HTTP request asks for; a balance, for those of its payer.
 *
 * @param carriedBy the payments that a transaction carries
 */
export function paymentsHitBy<P extends { readonly request: PaymentRequest | undefined }>(
  { calls }: FaultHit,
  candidates: readonly P[],
  carriedBy: (transaction: string) => readonly P[],
): ReadonlySet<P> {
  const named = calls.map(({ params, isHit }) => {
    const text = JSON.stringify(params).toLowerCase();
    const [first] = params;
    const byHash = typeof first === "string" ? carriedBy(first.toLowerCase()) : [];
    const byMark = candidates.filter((payment) => isAbout(marksOf(payment), text));
    return { text, isHit, payments: [...byHash, ...byMark] };
  });
  const ofRequest = named.flatMap(({ payments }) => payments);
  return new Set(
    named.flatMap(({ text, isHit, payments }) => {
      if (!isHit || payments.length > 0) return isHit ? payments : [];
      const ofPayer = ofRequest.filter(
        ({ request }) => request && text.includes(request.payment.payer.slice(2).toLowerCase()),
      );
      return ofPayer.length > 0 ? ofPayer : ofRequest;
    }),
  );
}
