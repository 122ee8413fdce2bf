import { type CheckMade, channels } from "../../observe/channels/channels.ts";
import type { Invalid } from "../../protocol/catalogue.ts";
import { type CheckName, checkNames } from "../../protocol/checks.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";

/**
 * Notes a check of one request for those who hear the channel `checks`, and gives its refusal back. With the first that is
 * noted, all before it in {@link checkNames} have passed.
 */
export type Checked = <T extends Invalid | undefined>(check: CheckName, refusal: T) => T;

/** Checks that passed are all alike: observers keep them for each request. */
const passed = checkNames.map((check): CheckMade => ({ check, refusal: undefined }));

const unheard: Checked = (_check, refusal) => refusal;

/** What publishes the checks of a request, together those between which nothing is waited for. */
export function publishChecksOf(payment: PaymentRequest, serviceId: string): Checked {
  if (!channels.checks.isHeard()) return unheard;
  const { settlementId } = payment;
  let isFirst = true;
  let noted: CheckMade[] = [];

  function publish(): void {
    const checks = noted;
    noted = [];
    channels.checks.publish(() => ({ serviceId, settlementId, payment, checks }));
  }

  return (check, refusal) => {
    if (noted.length === 0) queueMicrotask(publish);
    const place = checkNames.indexOf(check);
    noted.push(...passed.slice(isFirst ? 0 : place, refusal === undefined ? place + 1 : place));
    if (refusal !== undefined) noted.push({ check, refusal });
    isFirst = false;
    return refusal;
  };
}
