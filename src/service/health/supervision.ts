import type { ServiceLog } from "../../observe/log/logger.ts";
import { type Address, sameAddress } from "../../protocol/hex.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import type { Check } from "./check.ts";
import { warnsOfGasMoney } from "./check-gas-money.ts";
import type { Inspection } from "./inspect-network.ts";

/** Repeats the inspection of a service's networks while it runs. */
export type Supervision = {
  /** Inspects a network, logs new problems, and remembers the result. */
  inspect(network: NetworkName): Promise<Inspection>;
  /** Whether an operator can send on a network, by the last inspection: it has its role, gas money, and its signer. */
  canSend(network: NetworkName, operator: Address): boolean;
  /** Whether its gas money is running low, by the last inspection. */
  isLow(network: NetworkName, operator: Address): boolean;
};

export function createSupervision(options: {
  inspect: (network: NetworkName) => Promise<Inspection>;
  log: ServiceLog;
}): Supervision {
  const { log } = options;
  const found = new Map<NetworkName, readonly Check[]>();

  const checksOf = (network: NetworkName, operator: Address) =>
    (found.get(network) ?? []).filter(
      ({ account }) => account !== undefined && sameAddress(account, operator),
    );

  return {
    async inspect(network) {
      const inspection = await options.inspect(network);
      const bad = inspection.checks.filter(({ status }) => status !== "ok");
      const before = found.get(network) ?? [];
      const known = new Set(before.map(keyOf));
      for (const check of bad) {
        const { name, detail, advice, fatal } = check;
        if (known.has(keyOf(check))) continue;
        log[fatal ? "error" : "warn"]({ network, advice }, `${name}: ${detail}`);
      }
      if (before.length > 0 && bad.length === 0)
        log.info({ network }, "every check of the network is ok again");
      found.set(network, bad);
      return inspection;
    },

    canSend: (network, operator) => !checksOf(network, operator).some(({ status }) => status === "failed"),
    isLow: (network, operator) => checksOf(network, operator).some(warnsOfGasMoney),
  };
}

/** A changed balance is not a new problem. */
function keyOf({ name, status, account, detail }: Check): string {
  return `${name} ${status} ${account ?? detail}`;
}
