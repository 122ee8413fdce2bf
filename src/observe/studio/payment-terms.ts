import { type KnownTokens, knownToken } from "../../protocol/known-token.ts";
import { builtInNetworks, type Network, type NetworkRegistry } from "../../protocol/networks.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { type TokenUnits, unitsOf } from "../../protocol/token-units.ts";
import { nameOfTestPayer } from "../../published/test-payers.ts";
import type { ReceivedBody } from "../channels/channels.ts";
import { namesIn, readInput } from "../explain/read-input.ts";

/** The networks and tokens that payments name, where there are more than the built-in ones. */
export type KnownNames = { networks?: NetworkRegistry | undefined; tokens?: KnownTokens | undefined };

/** Who pays what on which network, as lists of payments tell it. */
export type PaymentTerms = {
  network: string | null;
  payer: string | null;
  /** The payer's name, if it is a test payer. */
  payerName: string | null;
  /** In the asset's smallest unit. */
  amount: string | null;
  asset: string | null;
  /** How the amount is shown; null if the token is unknown. */
  token: TokenUnits | null;
};

/** The terms of a payment, or else what is named in a body that is none, so that its sender finds it among the others. */
export function termsOf(
  request: PaymentRequest | undefined,
  received: ReceivedBody | undefined,
  { networks = builtInNetworks, tokens }: KnownNames,
): PaymentTerms {
  if (request !== undefined) {
    const { knownNetwork, payment, requirements } = request;
    return describe(
      {
        network: knownNetwork,
        payer: payment.payer,
        value: payment.limit,
        asset: requirements.asset,
      },
      tokens,
    );
  }
  const names = received === undefined ? undefined : namesIn(readInput(received.text).input, networks);
  return describe({ ...names, asset: names?.assets[0] }, tokens);
}

type Named = {
  network?: Network | undefined;
  payer?: string | undefined;
  value?: bigint | undefined;
  asset?: string | undefined;
};

function describe({ network, payer, value, asset }: Named, tokens: KnownTokens | undefined): PaymentTerms {
  // A payment header of version 1 names no token: the network's own is meant.
  const token = asset === undefined ? network?.usdc : knownToken(network, asset, tokens);
  return {
    network: network?.name ?? null,
    payer: payer ?? null,
    payerName: nameOfTestPayer(payer ?? "") ?? null,
    amount: value === undefined ? null : `${value}`,
    asset: asset ?? null,
    token: token === undefined ? null : unitsOf(token),
  };
}
