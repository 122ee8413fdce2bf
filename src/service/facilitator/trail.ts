import { type CheckMade, channels } from "../../observe/channels/channels.ts";
import { type Invalid, withReasonOfMethod } from "../../protocol/catalogue.ts";
import { type CheckName, checkNames } from "../../protocol/checks.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";

/** The checks of one request, in their order, for those who hear the channel `checks`. */
export type Trail = {
  /** Adds checks that passed. Settle may make some of them again. */
  pass(...checks: readonly CheckName[]): void;
  /** Adds one that refused, publishes it with those before it, and gives its refusal back. */
  refuse(check: CheckName, refusal: Invalid): Invalid;
  /** Publishes what was added since the last time: before each wait, so that observers see how far a request has come. */
  publish(): void;
};

/** Checks that passed are all alike: observers keep them for each request. */
const passed = Object.fromEntries(
  checkNames.map((check): [string, CheckMade] => [check, { check, refusal: undefined }]),
) as Readonly<Record<CheckName, CheckMade>>;

const unheard: Trail = { pass() {}, refuse: (_check, refusal) => refusal, publish() {} };

export function startTrail(payment: PaymentRequest, serviceId: string): Trail {
  if (!channels.checks.isHeard()) return unheard;
  const { settlementId } = payment;
  let made: CheckMade[] = [];

  function publish(): void {
    if (made.length === 0) return;
    const checks = made;
    made = [];
    channels.checks.publish(() => {
      return { kind: "checks", at: Date.now(), serviceId, settlementId, payment, checks };
    });
  }

  return {
    pass(...checks) {
      for (const check of checks) made.push(passed[check]);
    },
    refuse(check, refusal) {
      made.push({ check, refusal: withReasonOfMethod<Invalid>(refusal, payment) });
      publish();
      return refusal;
    },
    publish,
  };
}
