import { z } from "zod";
import type { Network, NetworkRegistry } from "../../protocol/networks.ts";
import { address, uint256String } from "../../protocol/primitives.ts";
import type { X402Version } from "../../protocol/requests.ts";
import { parseJson } from "../../util/json.ts";
import { decodeHeader } from "../scene/received-payment.ts";
import type { Answer } from "./send.ts";

/** The terms of one of a shop's offers. */
export type Terms = {
  x402Version: X402Version;
  network: Network;
  asset: { address: `0x${string}`; name: string; version: string };
  payTo: `0x${string}`;
  amount: bigint;
  maxTimeoutSeconds: number;
  /** The requirements as the shop wrote them; version 2 sends them back. */
  written: Record<string, unknown>;
  /** The `resource` member, as the shop wrote it. */
  resource: unknown;
};

const extra = z.looseObject({ name: z.string(), version: z.string() });
const common = { scheme: z.literal("exact"), network: z.string(), asset: address, payTo: address, extra };
const seconds = z.number().default(60);
const offerV1 = z.looseObject({ ...common, maxAmountRequired: uint256String, maxTimeoutSeconds: seconds });
const offerV2 = z.looseObject({ ...common, amount: uint256String, maxTimeoutSeconds: seconds });
const challenge = z.looseObject({
  accepts: z.array(z.record(z.string(), z.unknown())),
  resource: z.unknown().optional(),
});

/** The offers of a 402 of either version: version 2 has them in a header, version 1 in the body. */
export function readTerms({ headers, body }: Answer, known: NetworkRegistry): Terms[] {
  const v2 = challenge.safeParse(decodeHeader(headers.get("payment-required") ?? "")).data;
  const v1 = challenge.safeParse(parseJson(body)).data;
  return [
    ...(v2?.accepts ?? []).flatMap((written) => readOffer(known, 2, written, v2?.resource)),
    ...(v1?.accepts ?? []).flatMap((written) => readOffer(known, 1, written, undefined)),
  ];
}

function readOffer(
  known: NetworkRegistry,
  x402Version: X402Version,
  written: Record<string, unknown>,
  resource: unknown,
): Terms[] {
  const v2 = x402Version === 2 ? offerV2.safeParse(written).data : undefined;
  const v1 = x402Version === 1 ? offerV1.safeParse(written).data : undefined;
  const offer = v1 ?? v2;
  const network = offer === undefined ? undefined : known.find(offer.network, x402Version);
  if (offer === undefined || network === undefined) return [];
  const { asset, payTo, maxTimeoutSeconds } = offer;
  const amount = v1?.maxAmountRequired ?? v2?.amount ?? 0n;
  const token = { address: asset, name: offer.extra.name, version: offer.extra.version };
  return [{ x402Version, network, asset: token, payTo, amount, maxTimeoutSeconds, written, resource }];
}
