import type { ServiceLog } from "../../observe/log/logger.ts";
import type { Address } from "../../protocol/hex.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import type { OperatorError } from "../../util/errors.ts";

/**
 * Whether one operator can settle, by what its last payments came to: known at once, and before the next inspection of
 * the network.
 */
export type OperatorHealth = {
  /** Whether a payment should rather go to another operator: it cannot settle, and was tried lately. */
  isAvoided(): boolean;
  /** It could not settle a payment. Logged once for each problem. */
  failed(error: OperatorError): void;
  /** It has signed for a payment. */
  worked(): void;
};

/** After so long, in milliseconds, one payment tries again whether an operator can settle. */
const tryAgainMs = 30_000;

export function createOperatorHealth(options: {
  network: NetworkName;
  operator: Address;
  now: () => number;
  log: ServiceLog;
}): OperatorHealth {
  const { network, operator, now, log } = options;
  let trouble: { problem: string; until: number } | undefined;
  return {
    isAvoided: () => trouble !== undefined && now() < trouble.until,
    failed({ problem, hints }) {
      if (trouble?.problem !== problem) {
        log.error({ network, operator, advice: hints.join("; ") }, `an operator cannot settle: ${problem}`);
      }
      trouble = { problem, until: now() + tryAgainMs };
    },
    worked() {
      if (trouble !== undefined) log.info({ network, operator }, "an operator can settle again");
      trouble = undefined;
    },
  };
}
