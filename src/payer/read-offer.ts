import { z } from "zod";
import { methodsOf, schemes, transferMethods } from "../methods/method-lists.ts";
import { type Asset, findAsset, formatNetwork, type Network } from "../protocol/networks.ts";
import { decodeHeader } from "../protocol/payment-headers.ts";
import { address, uint256String } from "../protocol/primitives.ts";
import type { X402Version } from "../protocol/requests.ts";
import { KitError } from "../util/errors.ts";
import { membersOf } from "../util/json.ts";
import type { Offer } from "./sign-payment.ts";

const offerSchema = z.looseObject({
  scheme: z.enum(schemes),
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
      name: z.string().optional(),
      version: z.string().optional(),
    })
    .default({}),
});

const challengeSchema = z.looseObject({
  x402Version: z.union([z.literal(1), z.literal(2)]),
  accepts: z.array(z.unknown()),
  resource: z.unknown().optional(),
});

export type Challenge = z.infer<typeof challengeSchema>;

/** A network whose offers can be read, with its known tokens. */
type OfferNetwork = Pick<Network, "name" | "chainId" | "caip2"> & {
  asset: Asset;
  tokens?: Readonly<Record<string, Asset>> | undefined;
};

/** The challenge in a JSON body, or in the text of a `PAYMENT-REQUIRED` header; undefined if there is none. */
export function findChallenge(value: unknown): Challenge | undefined {
  return challengeSchema.safeParse(typeof value === "string" ? decodeHeader(value) : value).data;
}

/** The offers of a challenge that a payer can accept on these networks. */
export function readOffers<N extends OfferNetwork>(
  { x402Version, accepts, resource }: Challenge,
  networks: readonly N[],
): Offer<N>[] {
  return accepts.flatMap((one) => readOneOffer(one, x402Version, resource, networks) ?? []);
}

function readOneOffer<N extends OfferNetwork>(
  one: unknown,
  x402Version: X402Version,
  resource: unknown,
  networks: readonly N[],
): Offer<N> | undefined {
  const { data } = offerSchema.safeParse(one);
  const network = networks.find((known) => formatNetwork(known, x402Version) === data?.network);
  const value = x402Version === 1 ? data?.maxAmountRequired : data?.amount;
  if (data === undefined || network === undefined || value === undefined) return undefined;
  const { scheme, asset, payTo, maxTimeoutSeconds: validForSeconds, extra } = data;
  const [method] = methodsOf(scheme, extra.assetTransferMethod);
  if (method?.versions.includes(x402Version) !== true) return undefined;
  // Public clients sign for the values in the offer.
  if (!method.offerNeeds.every((member) => extra[member])) return undefined;
  const { name, version } = extra;
  const known = findAsset([network.asset, ...Object.values(network.tokens ?? {})], asset) ?? network.asset;
  return {
    x402Version,
    // As the shop wrote it: public shops compare every field with their offer.
    written: { ...membersOf(one), network: data.network },
    resource,
    network,
    scheme,
    method: method.transfer,
    asset: { ...known, address: asset, name: name ?? "", version: version ?? "" },
    payTo,
    value,
    validForSeconds,
  };
}

/**
 * Reads a shop's 402, and finds the first offer that can be paid on these networks.
 *
 * @param challenge the body as JSON, or the text of the `PAYMENT-REQUIRED` header
 * @param shop the subject of error messages, such as "The shop at http://127.0.0.1:3000"
 * @throws {KitError} if there is no challenge, or no offer that can be paid
 */
export function readOffer<N extends OfferNetwork>(
  challenge: unknown,
  networks: readonly N[],
  shop: string,
): Offer<N> {
  const found = findChallenge(challenge);
  if (found === undefined) {
    throw new KitError(`${shop} answers 402 without a challenge that can be read`, {
      hints: [
        "A challenge has x402Version and accepts: the body in version 1, PAYMENT-REQUIRED in version 2.",
      ],
    });
  }
  const [offer] = readOffers(found, networks);
  if (offer !== undefined) return offer;
  const running = networks.map(({ name }) => name).join(", ");
  throw new KitError(
    `${shop} offers nothing that can be paid here: there are ${running}, with schemes ${schemes.join(" and ")}`,
    {
      hints: [
        "An offer by EIP-3009 has the token's name and version in extra; one of upto facilitatorAddress.",
      ],
    },
  );
}
