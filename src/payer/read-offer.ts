import { z } from "zod";
import { methodOf } from "../methods/methods.ts";
import { type Network, transferMethods } from "../protocol/networks.ts";
import { decodeHeader } from "../protocol/payment-headers.ts";
import { address, uint256String } from "../protocol/primitives.ts";
import type { SignedPayment } from "../protocol/signed-payment.ts";
import { KitError } from "../util/errors.ts";
import { membersOf } from "../util/json.ts";

const offerSchema = z.looseObject({
  scheme: z.enum(["exact", "upto"]),
  network: z.string(),
  asset: address,
  payTo: address,
  amount: uint256String.optional(),
  maxAmountRequired: uint256String.optional(),
  maxTimeoutSeconds: z.int().positive().default(60),
  extra: z
    .looseObject({
      assetTransferMethod: z.enum(transferMethods).optional(),
      facilitatorAddress: address.optional(),
    })
    .default({}),
});

const challengeSchema = z.looseObject({
  x402Version: z.union([z.literal(1), z.literal(2)]),
  accepts: z.array(z.unknown()),
  resource: z.unknown().optional(),
});

export type Challenge = z.infer<typeof challengeSchema>;

/** The offer of a challenge that a payer can accept. */
export type Offer<N> = ReturnType<typeof readOffer<N & OfferNetwork>>;

type OfferNetwork = Pick<Network, "name" | "caip2">;

/**
 * Reads a shop's 402.
 *
 * @param challenge its body as JSON, or the text of its header `PAYMENT-REQUIRED`
 * @param shop the subject of error messages, such as "The shop at http://127.0.0.1:3000"
 * @throws {KitError} when it is neither
 */
export function readChallenge(challenge: unknown, shop: string): Challenge {
  const value = typeof challenge === "string" ? decodeHeader(challenge) : challenge;
  const { data } = challengeSchema.safeParse(value);
  if (data !== undefined) return data;
  throw new KitError(`${shop} answers 402 without a challenge that can be read`, {
    hints: ["A challenge has x402Version and accepts: the body in version 1, PAYMENT-REQUIRED in version 2."],
  });
}

/**
 * Finds the first offer that can be paid on one of these networks.
 *
 * @throws {KitError} when there is none
 */
export function readOffer<N extends OfferNetwork>(
  { x402Version, accepts, resource }: Challenge,
  networks: readonly N[],
  shop: string,
) {
  for (const one of accepts) {
    const { data } = offerSchema.safeParse(one);
    if (data === undefined) continue;
    const { scheme, asset, payTo, maxTimeoutSeconds, extra } = data;
    const facilitator = scheme === "upto" ? extra.facilitatorAddress : undefined;
    const isByPermit2 = scheme === "upto" || extra.assetTransferMethod === "permit2";
    // Version 1 knows EIP-3009 alone, and a payment of scheme “upto” names who may submit it.
    if (isByPermit2 && (x402Version === 1 || (scheme === "upto" && facilitator === undefined))) continue;
    const value = data.maxAmountRequired ?? data.amount;
    const network = networks.find(({ name, caip2 }) => data.network === (x402Version === 1 ? name : caip2));
    if (network === undefined || value === undefined) continue;
    const method = isByPermit2 ? ("permit2" as const) : ("eip3009" as const);
    return {
      x402Version,
      // As the shop wrote it: public shops compare every member with their offer.
      written: membersOf(one),
      resource,
      network,
      scheme,
      method,
      asset,
      payTo,
      value,
      maxTimeoutSeconds,
      facilitator,
    };
  }
  const running = networks.map(({ name }) => name).join(", ");
  throw new KitError(
    `${shop} offers nothing that can be paid here: there are ${running}, with schemes exact and upto`,
  );
}

/** The payment for an offer as its header carries it. */
export function payloadFor(
  { x402Version, written, resource }: Pick<Offer<OfferNetwork>, "x402Version" | "written" | "resource">,
  payment: SignedPayment,
) {
  const payload = methodOf(payment).write(payment);
  return x402Version === 1
    ? { x402Version, scheme: "exact", network: written.network, payload }
    : { x402Version, resource, accepted: written, payload };
}
