import { publicationTime } from "../../observe/channels/channel.ts";
import { type CheckMade, channels } from "../../observe/channels/channels.ts";
import type { Invalid } from "../../protocol/catalogue.ts";
import { type CheckName, checkNames } from "../../protocol/checks.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";

/**
 * Notes a check of one request for those who hear the channel `checks`, and gives its refusal back. With the first that is
 * noted, all before it in {@link checkNames} have passed.
 */
export type Checked = <T extends Invalid | undefined>(check: CheckName, refusal: T) => T;

/** Checks that passed are all alike, and so are lists of them: observers keep them for each request. */
const passed = checkNames.map((check): CheckMade => ({ check, refusal: undefined }));
const passedAlone = byName((place) => passed.slice(place, place + 1));
const passedBefore = byName((place) => passed.slice(0, place));
const passedUpTo = byName((place) => passed.slice(0, place + 1));

function byName<T>(describe: (place: number) => T): Readonly<Record<CheckName, T>> {
  return Object.fromEntries(checkNames.map((name, place) => [name, describe(place)])) as Record<CheckName, T>;
}

const unheard: Checked = (_check, refusal) => refusal;

/** What publishes the checks of a request, as a list that grows. */
export function publishChecksOf(payment: PaymentRequest, serviceId: string): Checked {
  if (!channels.checks.isHeard()) return unheard;
  const { settlementId } = payment;
  const checks: (readonly CheckMade[])[] = [];
  const times: number[] = [];
  return (check, refusal) => {
    const isFirst = checks.length === 0;
    if (refusal === undefined) checks.push((isFirst ? passedUpTo : passedAlone)[check]);
    else checks.push([...(isFirst ? passedBefore[check] : []), { check, refusal }]);
    times.push(publicationTime());
    if (isFirst) channels.checks.publish(() => ({ serviceId, settlementId, payment, checks, times }));
    return refusal;
  };
}
