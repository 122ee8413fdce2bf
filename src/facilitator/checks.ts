import type { Head } from "../chain/chain.ts";
import type { NetworkConfig } from "../config/network-config.ts";
import type { Authorization } from "../protocol/authorization.ts";
import { sameAddress } from "../protocol/hex.ts";
import { type Invalid, invalid } from "../protocol/reasons.ts";
import type { PaymentRequest } from "../protocol/requests.ts";

/** How long before `validBefore` a payment must arrive to be settled in time. */
export const expiryMarginSeconds = 6n;

type PureCheck = (request: PaymentRequest, network: NetworkConfig) => Invalid | undefined;

/** What can be judged of a request without asking any chain or ledger, in the order it is judged. */
const pureChecks: Readonly<Record<string, PureCheck>> = {
  assetIsAllowed: ({ requirements }, network) =>
    network.assets.some(({ address }) => sameAddress(address, requirements.asset))
      ? undefined
      : invalid(
          "invalid_payment_requirements",
          `The asset ${requirements.asset} is not accepted on ${network.name}; accepted: ${network.assets.map(({ address }) => address).join(", ")}`,
          "requirements",
        ),

  payToIsContract: ({ requirements }, network) =>
    requirements.payTo === undefined || sameAddress(requirements.payTo, network.facilitatorContract)
      ? undefined
      : invalid(
          "invalid_payment_requirements",
          `paymentRequirements.payTo must be the facilitator contract ${network.facilitatorContract}`,
          "requirements",
        ),

  recipientIsContract: ({ authorization }, network) =>
    sameAddress(authorization.to, network.facilitatorContract)
      ? undefined
      : invalid(
          "invalid_exact_evm_payload_recipient_mismatch",
          `authorization.to must be the facilitator contract ${network.facilitatorContract}`,
        ),

  valueIsExact: ({ authorization, requirements }) =>
    authorization.value === requirements.amount
      ? undefined
      : invalid(
          "invalid_exact_evm_payload_authorization_value",
          `authorization.value is ${authorization.value}, but exactly ${requirements.amount} is required`,
        ),
};

/** The first thing wrong with a request on its face; undefined when nothing is. */
export function judgeOnItsFace(request: PaymentRequest, network: NetworkConfig): Invalid | undefined {
  for (const check of Object.values(pureChecks)) {
    const refusal = check(request, network);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

/**
 * Whether the chain's clock is inside the payer's window. Both bounds are exclusive, as in EIP-3009, and
 * `validBefore` must be at least {@link expiryMarginSeconds} away.
 */
export function judgeWindow(
  { validAfter, validBefore }: Pick<Authorization, "validAfter" | "validBefore">,
  head: Pick<Head, "timestamp">,
): Invalid | undefined {
  if (head.timestamp <= validAfter) {
    return invalid(
      "invalid_exact_evm_payload_authorization_valid_after",
      `The authorization is valid after ${validAfter}; the chain's time is ${head.timestamp}`,
    );
  }
  if (validBefore < head.timestamp + expiryMarginSeconds) {
    return invalid(
      "invalid_exact_evm_payload_authorization_valid_before",
      `The authorization is valid before ${validBefore}; the chain's time is ${head.timestamp}, and ${expiryMarginSeconds} seconds are needed to settle`,
    );
  }
  return undefined;
}
