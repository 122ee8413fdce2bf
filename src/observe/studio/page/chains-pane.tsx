import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { formatUnits, parseAmount } from "../../../protocol/token-units.ts";
import {
  act,
  type ChainView,
  chains,
  coinOf,
  funding,
  harness,
  loadChains,
  notice,
  tokenOf,
} from "./state.ts";

const refreshEveryMs = 2_000;

/** The local chains: block, time and balances, and what moves them. */
export function ChainsPane() {
  useEffect(() => {
    void loadChains();
    const timer = setInterval(loadChains, refreshEveryMs);
    return () => clearInterval(timer);
  }, []);
  return (
    <div class="pane">
      {chains.value.map((chain) => (
        <Chain key={chain.network} chain={chain} />
      ))}
    </div>
  );
}

function Chain({ chain: { network, blockNumber, time, balances, operatorGasMoney } }: { chain: ChainView }) {
  const asked = funding.value?.network === network ? funding.value : null;
  const payer = useSignal(asked?.payer ?? "empty");
  const amount = useSignal(asked?.amount ?? "1");
  const fundButton = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => {
    if (asked === null) return;
    fundButton.current?.focus();
    funding.value = null;
  }, []);
  const { symbol, decimals } = tokenOf(network);
  const payers = harness.value?.payers ?? {};
  const move = async (path: string, body: object, done: string) => {
    await act(`/harness/${path}`, { network, ...body }, done);
    await loadChains();
  };
  const fund = async () => {
    const units = parseAmount(amount.value, decimals);
    if (units === undefined) {
      notice.value = `An amount is digits with at most ${decimals} behind the point, such as 0.01.`;
      return;
    }
    const to = payers[payer.value]?.address;
    await move(
      "fund",
      { to, amount: units },
      `${payer.value} has ${formatUnits(units, decimals)} ${symbol} more.`,
    );
  };
  return (
    <section class="card" aria-label={network}>
      <h2>{network}</h2>
      <p class="soft">
        block {blockNumber} · {new Date(time * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC ·
        operator {(Number(BigInt(operatorGasMoney) / 10n ** 12n) / 1e6).toFixed(2)} {coinOf(network)} for gas
      </p>
      <div class="buttons">
        <button type="button" onClick={() => move("mine", { blocks: 1 }, `${network} has a block more.`)}>
          Mine a block
        </button>
        <button
          type="button"
          onClick={() => move("advance-time", { seconds: 60 }, `${network} is a minute later.`)}
        >
          +1 minute
        </button>
        <button
          type="button"
          onClick={() => move("advance-time", { seconds: 3_600 }, `${network} is an hour later.`)}
        >
          +1 hour
        </button>
        <label>
          <select
            aria-label={`Payer to fund on ${network}`}
            value={payer.value}
            onChange={(event) => (payer.value = event.currentTarget.value)}
          >
            {Object.keys(payers).map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label>
          <input
            type="text"
            inputMode="decimal"
            class="amount-input"
            aria-label={`${symbol} for the payer on ${network}`}
            value={amount.value}
            onInput={(event) => (amount.value = event.currentTarget.value)}
          />
        </label>
        <button type="button" ref={fundButton} onClick={fund}>
          Fund {symbol}
        </button>
      </div>
      <table class="balances">
        <caption>Balances in {symbol}</caption>
        <tbody>
          {Object.entries(balances).map(([name, units]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td class="number">{formatUnits(units, decimals)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
