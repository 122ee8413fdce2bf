import { type CheckMade, channels } from "../channels/channels.ts";
import { publicationTime, publicationTimeAtOnce } from "../channels/publication-time.ts";
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

/** Notes a check of one request for those who hear the channel `checks`, and gives its refusal back. */
export type Checked = <T extends Invalid | undefined>(check: CheckName, refusal: T) => T;

/** Checks that passed are all alike. */
const passed = Object.fromEntries(
  checkNames.map((check): [string, CheckMade] => [check, { check, refusal: undefined }]),
) as Readonly<Record<CheckName, CheckMade>>;

/** Nothing is waited for between the check before and one of these: the clock need not be read for each. */
const atOnce: ReadonlySet<CheckName> = new Set([...pureCheckNames, "minimumIsReached"]);

const unheard: Checked = (_check, refusal) => refusal;

/** What publishes the checks of a request, as a list that grows. */
export function publishChecksOf(payment: PaymentRequest, serviceId: string): Checked {
  if (!channels.checks.isHeard()) return unheard;
  const { settlementId } = payment;
  const checks: CheckMade[] = [];
  const times: number[] = [];
  return (check, refusal) => {
    checks.push(refusal === undefined ? passed[check] : { check, refusal });
    times.push(checks.length > 1 && atOnce.has(check) ? publicationTimeAtOnce() : publicationTime());
    if (checks.length === 1)
      channels.checks.publish(() => ({ serviceId, settlementId, payment, checks, times }));
    return refusal;
  };
}
