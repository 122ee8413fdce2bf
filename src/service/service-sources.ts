import type { Ledger } from "../ledger/ledger.ts";
import { recoveryStates } from "../ledger/recoveries.ts";
import type { Settling } from "../methods/on-chain/settling.ts";
import type { MetricSources, OperatorFunds } from "../observe/metrics/metrics.ts";
import type { NetworkName } from "../protocol/networks.ts";
import { withTimeout } from "../util/with-timeout.ts";
import type { Lanes } from "./facilitator/context.ts";

/** For the gas money of one network, milliseconds; a reader of the metrics waits a little longer. */
const timeoutMs = 2_000;

/** What the metrics of a service look up when they are read. */
export function createMetricSources(options: {
  networks: ReadonlyMap<NetworkName, Lanes>;
  ledger: Pick<Ledger, "outcomes" | "recoveries">;
  health: MetricSources["health"];
  /** What a payment uses that is settled alone. */
  usual: Settling["usual"];
}): Omit<MetricSources, "underWay"> {
  const { networks, ledger, health, usual } = options;

  async function fundsOn(network: NetworkName, lanes: Lanes): Promise<readonly OperatorFunds[]> {
    const [{ chain }] = lanes;
    const operators = lanes.map(({ relayer }) => relayer.operator);
    const { balances, settleCost } = await withTimeout(chain.gasMoney(operators, usual), timeoutMs);
    return operators.flatMap((operator, index) => {
      const balance = balances[index];
      return balance === undefined ? [] : [{ network, operator, balance, transactionCost: settleCost }];
    });
  }

  return {
    health,

    lanes: () =>
      [...networks].flatMap(([network, lanes]) =>
        lanes.map(({ relayer, canSend, isLow }) => ({
          network,
          operator: relayer.operator,
          canSend: canSend(),
          isLow: isLow(),
          ...relayer.load(),
        })),
      ),

    async pending() {
      const unfinished = await ledger.outcomes.unfinished();
      return [...networks.keys()].map((network) => {
        const found = unfinished.find((one) => one.network === network);
        return { network, count: found?.count ?? 0, oldestClaimedAt: found?.oldestClaimedAt ?? null };
      });
    },

    async directSubmissions() {
      const counts = await ledger.recoveries.recoveryCounts();
      return [...networks.keys()].flatMap((network) =>
        recoveryStates.map((state) => ({
          network,
          state,
          count: counts.find((one) => one.network === network && one.state === state)?.count ?? 0,
        })),
      );
    },

    async funds() {
      // A network that does not answer must not hide the gas money on the others.
      const asked = [...networks].map(([network, lanes]) => fundsOn(network, lanes));
      const answers = await Promise.allSettled(asked);
      return answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
    },
  };
}
