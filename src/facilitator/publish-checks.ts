import { channels } from "../channels/channels.ts";
import { pureCheckNames } from "../protocol/checks.ts";
import type { Invalid } from "../protocol/reasons.ts";
import type { PaymentRequest } from "../protocol/requests.ts";

/** The checks of a payment, by name, in the order in which verify makes them; settle makes the last two again. */
export const checkNames = [
  "networkIsEnabled",
  ...pureCheckNames,
  "minimumIsReached",
  "signatureHolds",
  "authorizationIsFree",
  "windowIsOpen",
  "simulationSucceeds",
] as const;

export type CheckName = (typeof checkNames)[number];

/** Publishes a check of one request on the channel `check`, and gives its refusal back. */
export type Checked = <T extends Invalid | undefined>(check: CheckName, refusal: T) => T;

/** What publishes the checks of a request. */
export function publishChecksOf(payment: PaymentRequest, serviceId: string): Checked {
  return (check, refusal) => {
    const { settlementId } = payment;
    channels.check.publish(() => ({ serviceId, settlementId, payment, check, refusal }));
    return refusal;
  };
}
