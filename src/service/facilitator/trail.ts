import { type CheckMade, channels } from "../../observe/channels/channels.ts";
import { type Invalid, withReasonOfMethod } from "../../protocol/catalogue.ts";
import { type CheckName, checkNames } from "../../protocol/checks.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";

/** The checks of one request, in order, for subscribers of the channel `checks`. */
export type Trail = {
  /** Adds checks that passed. Settle may repeat some of them. */
  pass(...checks: readonly CheckName[]): void;
  /** Adds a check that refused, publishes it with those before it, and returns its refusal. */
  refuse(check: CheckName, refusal: Invalid): Invalid;
  /**
   * Publishes the checks added since the last call. Called before each wait, so that observers see the progress of a request.
   */
  publish(): void;
};

/** One shared object per passed check: observers keep the checks of each request. */
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
