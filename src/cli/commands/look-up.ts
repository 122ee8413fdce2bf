import type { NamedPayment } from "../../observe/explain/read-input.ts";
import { mostListed, type PaymentDetail, type PaymentSummary } from "../../observe/studio/payment-view.ts";
import type { PaymentReader } from "../../observe/studio/read-payments.ts";
import { type Address, type Hex, isAddress, sameAddress } from "../../protocol/hex.ts";
import { settlementId } from "../../protocol/signed-payment.ts";

/** The id of the settlement of a payment, in a token. */
export function idOf({ network, authorization: { from, nonce } }: NamedPayment, asset: Address): Hex {
  return settlementId(network.chainId, asset, from, nonce);
}

/** A payment as a running service has seen it. A header of version 1 does not name its token: all of them are tried. */
export async function findPayment(
  reader: Pick<PaymentReader, "find" | "list">,
  payment: NamedPayment,
): Promise<PaymentDetail | undefined> {
  const { network, authorization, assets } = payment;
  for (const asset of assets) {
    const found = await reader.find(idOf(payment, asset));
    if (found !== undefined) return found;
  }
  const listed = (await reader.list(mostListed)).find(
    ({ id, network: on, payer, asset }) =>
      on === network.name &&
      payer !== null &&
      sameAddress(payer, authorization.from) &&
      isAddress(asset) &&
      idOf(payment, asset) === id,
  );
  return listed && reader.find(listed.id);
}

/** The payment that was asked for last; undefined where none was. */
export async function findLastAsked(
  reader: Pick<PaymentReader, "list">,
): Promise<PaymentSummary | undefined> {
  const [last] = (await reader.list(mostListed)).toSorted((a, b) => lastAskedAt(b) - lastAskedAt(a));
  return last;
}

/** In unix milliseconds. What becomes of a payment on its chain, after its answer, counts for nothing. */
function lastAskedAt({ verify, settle, lastSeenAt }: PaymentSummary): number {
  const asked = [verify, settle].flatMap((view) => view ?? []);
  // One that is under way has no time, and what no route answers neither verify nor settle.
  return asked.length === 0 ? lastSeenAt : Math.max(...asked.map(({ at }) => at ?? lastSeenAt));
}
