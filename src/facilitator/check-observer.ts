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

/** Told of every check of a request as it is made. Must neither throw nor take time. */
export type CheckObserver = (request: PaymentRequest, check: CheckName, refusal: Invalid | undefined) => void;

/** One request's part of an observer; gives the refusal back. */
export type Checked = <T extends Invalid | undefined>(check: CheckName, refusal: T) => T;

/** Binds an observer to a request. */
export function checkedFor(observer: CheckObserver | undefined, request: PaymentRequest): Checked {
  return (check, refusal) => {
    observer?.(request, check, refusal);
    return refusal;
  };
}
