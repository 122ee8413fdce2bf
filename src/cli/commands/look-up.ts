import { type Input, isRecord } from "../../explain/read-input.ts";
import { settlementId } from "../../protocol/authorization.ts";
import { type Address, type Hex, sameAddress } from "../../protocol/hex.ts";
import type { Network, NetworkRegistry } from "../../protocol/networks.ts";
import { isBytes32, isWireAddress, parseUint256 } from "../../protocol/wire-values.ts";
import { mostListed, type PaymentDetail, type PaymentSummary } from "../../studio/payment-view.ts";
import type { PaymentReader } from "../../studio/read-payments.ts";

/** What a payment is known by, as far as a text names it. */
export type NamedPayment = {
  network: Network;
  authorization: { from: Address; nonce: Hex };
  /** In the token's smallest unit; undefined where it cannot be read. */
  value: bigint | undefined;
  /** The token that it names, and else the network's own. */
  assets: readonly [Address, ...Address[]];
};

/** What the payment in a request body or a payment header is known by; undefined where that cannot be read. */
export function namedPayment(input: Input | undefined, networks: NetworkRegistry): NamedPayment | undefined {
  const network = networkIn(input, networks);
  if (network === undefined || input === undefined || !("payload" in input)) return undefined;
  const authorization = memberOf(memberOf(input.payload, "payload"), "authorization");
  const [from, nonce] = [memberOf(authorization, "from"), memberOf(authorization, "nonce")];
  if (!isWireAddress(from) || !isBytes32(nonce)) return undefined;
  const value = memberOf(authorization, "value");
  const required = input.kind === "request" ? memberOf(input.requirements, "asset") : undefined;
  const named = [required, memberOf(memberOf(input.payload, "accepted"), "asset")].filter(isWireAddress);
  const [first = network.usdc.address, ...others] = named;
  return {
    ...{ network, authorization: { from, nonce }, assets: [first, ...others] },
    value: typeof value === "string" ? (parseUint256(value) ?? undefined) : undefined,
  };
}

/** The network that a payment names, in either version's words. */
export function networkIn(input: Input | undefined, networks: NetworkRegistry): Network | undefined {
  if (input === undefined || !("payload" in input)) return undefined;
  const name = memberOf(memberOf(input.payload, "accepted"), "network") ?? memberOf(input.payload, "network");
  return typeof name === "string" ? (networks.find(name, 1) ?? networks.find(name, 2)) : undefined;
}

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

function memberOf(value: unknown, name: string): unknown {
  return isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}
