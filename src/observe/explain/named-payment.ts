import type { Address, Hex } from "../../protocol/hex.ts";
import type { Network, NetworkRegistry } from "../../protocol/networks.ts";
import { isBytes32, isWireAddress, parseUint256 } from "../../protocol/wire-values.ts";
import { membersOf } from "../../util/json.ts";
import type { Input } from "./read-input.ts";

/** What a text names of a payment, whether or not it is one. */
export type PaymentNames = {
  /** In either version's words; undefined where it names none that is known. */
  network: Network | undefined;
  payer: Address | undefined;
  /** In the token's smallest unit; undefined where it cannot be read. */
  value: bigint | undefined;
  /** Of the requirements, then of what a payment of version 2 accepts. */
  assets: readonly Address[];
};

/** What a payment is known by, as far as a text names it. */
export type NamedPayment = {
  network: Network;
  authorization: { from: Address; nonce: Hex };
  /** In the token's smallest unit; undefined where it cannot be read. */
  value: bigint | undefined;
  /** The token that it names, and else the network's own. */
  assets: readonly [Address, ...Address[]];
};

/** What a request body or a payment header names; undefined of anything else. */
export function namesIn(input: Input | undefined, networks: NetworkRegistry): PaymentNames | undefined {
  if (input === undefined || !("payload" in input)) return undefined;
  const payload = membersOf(input.payload);
  const accepted = membersOf(payload.accepted);
  const name = accepted.network ?? payload.network;
  const { from, value } = authorizationIn(input);
  const required = input.kind === "request" ? membersOf(input.requirements).asset : undefined;
  return {
    network: typeof name === "string" ? (networks.find(name, 1) ?? networks.find(name, 2)) : undefined,
    payer: isWireAddress(from) ? from : undefined,
    value: readAmount(value),
    assets: [required, accepted.asset].filter(isWireAddress),
  };
}

/** What the payment in a request body or a payment header is known by; undefined where that cannot be read. */
export function namedPayment(input: Input | undefined, networks: NetworkRegistry): NamedPayment | undefined {
  const { network, payer, value, assets = [] } = namesIn(input, networks) ?? {};
  const { nonce } = authorizationIn(input);
  if (network === undefined || payer === undefined || !isBytes32(nonce)) return undefined;
  const [first = network.usdc.address, ...others] = assets;
  return { network, authorization: { from: payer, nonce }, value, assets: [first, ...others] };
}

function authorizationIn(input: Input | undefined): Readonly<Record<string, unknown>> {
  const payload = input !== undefined && "payload" in input ? input.payload : undefined;
  return membersOf(membersOf(membersOf(payload).payload).authorization);
}

/** A number where a text of digits belongs is read too: that mistake is a usual one. */
function readAmount(value: unknown): bigint | undefined {
  const text = Number.isSafeInteger(value) ? `${value}` : value;
  return typeof text === "string" ? (parseUint256(text) ?? undefined) : undefined;
}
