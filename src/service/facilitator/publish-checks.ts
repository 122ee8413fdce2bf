import { type CheckMade, channels } from "../../observe/channels/channels.ts";
import type { Invalid } from "../../protocol/catalogue.ts";
import { type CheckName, checkNames } from "../../protocol/checks.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";

/**
 * Notes a check of one request for those who hear the channel `checks`, and gives its refusal back. What is before it in
 * {@link checkNames} and was not noted has passed.
 */
export type Checked = <T extends Invalid | undefined>(check: CheckName, refusal: T) => T;

/** Checks that passed are all alike, and so are lists of them: observers keep them for each request. */
const passed = checkNames.map((check): CheckMade => ({ check, refusal: undefined }));
const passedLists = new Map<string, readonly CheckMade[]>();

/** Those from one place in {@link checkNames} to before another. */
function passedBetween(from: number, to: number): readonly CheckMade[] {
  const key = `${from} ${to}`;
  const list = passedLists.get(key) ?? passed.slice(from, to);
  passedLists.set(key, list);
  return list;
}

const unheard: Checked = (_check, refusal) => refusal;

/** What publishes the checks of a request, together those between which nothing is waited for. */
export function publishChecksOf(payment: PaymentRequest, serviceId: string): Checked {
  if (!channels.checks.isHeard()) return unheard;
  const { settlementId } = payment;
  /** The places of the first check that is not published, and of the one after the last. */
  let from = 0;
  let to = 0;
  let refused: CheckMade | undefined;

  function publish(): void {
    const held = passedBetween(from, to);
    const checks = refused === undefined ? held : [...held, refused];
    from = to;
    refused = undefined;
    channels.checks.publish(() => {
      return { kind: "checks", at: Date.now(), serviceId, settlementId, payment, checks };
    });
  }

  return (check, refusal) => {
    const place = checkNames.indexOf(check);
    if (from === to && refused === undefined) queueMicrotask(publish);
    // Settle makes some of them again.
    if (place < from) from = place;
    to = refusal === undefined ? place + 1 : place;
    if (refusal !== undefined) refused = { check, refusal };
    return refusal;
  };
}
