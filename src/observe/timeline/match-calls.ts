import type { PaymentRequest } from "../../protocol/requests.ts";
import type { FaultHit } from "../channels/channels.ts";

/** What may have a payment that can be searched for. */
type Searchable = { readonly request: PaymentRequest | undefined };

/** This many digits of a signature distinguish it from others; a shorter one, which is malformed, does not. */
const digitsSearched = 64;

/**
 * Whether JSON-RPC parameters, as JSON in lower case, are about a payment: its nonce is 32 random bytes and stands in every
 * simulation and every transaction of it, and its signature in what wallets are asked.
 */
export function isAbout({ request }: Searchable, text: string): boolean {
  if (request === undefined) return false;
  const { nonce, signature } = request.payment;
  return [nonce.slice(2), signature.slice(2, 2 + digitsSearched)].some(
    (digits) => digits.length === digitsSearched && text.includes(digits.toLowerCase()),
  );
}

/**
 * Which payments a fault of a connection hit, of those that it may have been: those that a call {@link isAbout}, or whose
 * transaction it names by its hash. A call that names none, as for the newest block, counts for all that its HTTP request
 * asks for; a balance, for those of its payer.
 *
 * @param carriedBy the payments that a transaction carries
 */
export function paymentsHitBy<P extends Searchable>(
  { calls }: Pick<FaultHit, "calls">,
  candidates: readonly P[],
  carriedBy: (transaction: string) => readonly P[],
): ReadonlySet<P> {
  const named = calls.map(({ params, isHit }) => {
    const text = JSON.stringify(params).toLowerCase();
    const [first] = params;
    const byHash = typeof first === "string" ? carriedBy(first.toLowerCase()) : [];
    return { text, isHit, payments: [...byHash, ...candidates.filter((payment) => isAbout(payment, text))] };
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
