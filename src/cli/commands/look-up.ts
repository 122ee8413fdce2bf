import type { PayerState } from "../../methods/exact-eip3009/on-chain/state.ts";
import { explanationOfReason, type RefusalExplanation } from "../../observe/explain/explanations.ts";
import type { NamedPayment } from "../../observe/explain/read-input.ts";
import { mostListed, type PaymentDetail, type PaymentSummary } from "../../observe/studio/payment-view.ts";
import type { Invalid } from "../../protocol/catalogue.ts";
import { type Address, type Hex, sameAddress } from "../../protocol/hex.ts";
import { refusals } from "../../protocol/refusals.ts";
import { settlementId } from "../../protocol/signed-payment.ts";
import { formatAmount, knownToken, type TokenUnits, unitsOf } from "../../protocol/token-units.ts";
import { isWireAddress } from "../../protocol/wire-values.ts";
import type { PaymentReader } from "../kit/read-payments.ts";

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
      isWireAddress(asset) &&
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

/** What stands in the way of a payment by the state of its chain, in the words of the refusals that it would lead to. */
export function explainState(
  { balance, payerBlacklisted, tokenPaused, used }: PayerState,
  { network, value }: NamedPayment,
  asset: Address,
): RefusalExplanation[] {
  const token = knownToken(network, asset);
  const of = (at: string, refusal: Invalid) => explanationOfReason(refusal, at);
  return [
    ...(used ? [of("authorization.nonce", refusals.usedOnChain())] : []),
    ...(tokenPaused ? [of("", refusals.assetPaused())] : []),
    ...(payerBlacklisted ? [of("authorization.from", refusals.payerBlacklisted())] : []),
    ...(value !== undefined && balance < value
      ? [of("authorization.value", refusals.balanceTooSmall(balance, value, token))]
      : []),
  ];
}

/** The state of a chain as the end of a sentence about a payment. */
export function describeState(
  { balance, used: isUsed }: PayerState,
  { network }: NamedPayment,
  { asset, units }: { asset: Address; units: TokenUnits | null },
): string {
  const token = knownToken(network, asset);
  const held = formatAmount(balance, units ?? (token === undefined ? null : unitsOf(token)));
  const used = isUsed ? "was used or cancelled in a block older than those that were searched" : "is unused";
  return `its authorization ${used} on ${network.name}, where its payer holds ${held}`;
}
