import type { IncomingHttpHeaders } from "node:http";
import { z } from "zod";
import { sameAddress } from "../../protocol/hex.ts";
import { formatNetwork } from "../../protocol/networks.ts";
import { decodeHeader } from "../../protocol/payment-headers.ts";
import { address } from "../../protocol/primitives.ts";
import type { X402Version } from "../../protocol/requests.ts";
import type { SignedPayment } from "../../protocol/signed-payment.ts";
import { MalformedError } from "../../protocol/wire-values.ts";
import { methodOfWay, type Offer } from "./offers.ts";

/** A payment read from a header. */
export type ReceivedPayment = {
  x402Version: X402Version;
  /** The payment as the buyer wrote it. */
  payload: unknown;
  network: string;
  /** The offer that it was made for; undefined when it fits none. */
  offer: Offer | undefined;
  signed: SignedPayment;
};

const paymentV1 = z.object({ x402Version: z.literal(1), network: z.string(), payload: z.unknown() });
const paymentV2 = z.object({
  x402Version: z.literal(2),
  accepted: z.object({ network: z.string(), asset: address }),
  payload: z.unknown(),
  extensions: z.unknown().optional(),
});

/**
 * Reads the payment in the headers of a request: undefined without one, "unreadable" when it is malformed.
 *
 * @param offers what was asked for so far, one at least, all of one way to pay; newer ones are tried first
 */
export function readPayment(
  headers: IncomingHttpHeaders,
  offers: readonly [Offer, ...Offer[]],
): ReceivedPayment | "unreadable" | undefined {
  const text = headers["payment-signature"] ?? headers["x-payment"];
  if (text === undefined) return undefined;
  const payload = decodeHeader(String(text));
  const [v1, v2] = [paymentV1.safeParse(payload).data, paymentV2.safeParse(payload).data];
  const written = v2?.accepted ?? v1;
  if (written === undefined) return "unreadable";
  const x402Version = v2 === undefined ? 1 : 2;
  const [{ way, asset: usual }] = offers;
  const read = (asset: Offer["asset"]["address"]) => {
    const place = { value: v2?.payload ?? v1?.payload, path: "payload" };
    return methodOfWay[way].read(place, asset, v2?.extensions);
  };
  try {
    const signed = read(v2?.accepted.asset ?? usual.address);
    const received = { x402Version, payload, network: written.network, signed } as const;
    const offer = offers.findLast((one) => misfitOf(received, one) === undefined);
    // In version 1 a payment does not name its token.
    return offer === undefined || v2 !== undefined
      ? { ...received, offer }
      : { ...received, offer, signed: read(offer.asset.address) };
  } catch (error) {
    if (error instanceof MalformedError) return "unreadable";
    throw error;
  }
}

/** What of a payment is not as it was asked for, in words; undefined where it fits. */
export function misfitOf(
  { x402Version, network, signed }: Omit<ReceivedPayment, "offer">,
  offer: Offer,
): string | undefined {
  const asked = formatNetwork(offer.network, x402Version);
  if (network !== asked) return `it is on ${network}, and ${asked} was asked for`;
  if (!sameAddress(signed.payTo, offer.payTo)) {
    const own = sameAddress(signed.payTo, signed.payer) ? ", the payer's own" : "";
    return `its signature lets the money go to ${signed.payTo}${own}, and payTo is ${offer.payTo}`;
  }
  if (signed.limit !== offer.amount) return `it is of ${signed.limit}, and ${offer.amount} was asked for`;
  if (x402Version === 2 && !sameAddress(signed.asset, offer.asset.address)) {
    return `it is of the token ${signed.asset}, and ${offer.asset.address} was asked for`;
  }
  return undefined;
}
