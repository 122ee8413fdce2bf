import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { formatUnits, parseAmount } from "../../../protocol/token-units.ts";
import type { ChainView } from "../harness-view.ts";
import { Select } from "./controls.tsx";
import { act, chains, coinOf, funding, harness, loadChains, noticeAmount, tokenOf } from "./page-state.ts";

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
  const change = async (path: string, body: object, done: string) => {
    await act(`/harness/${path}`, { network, ...body }, done);
    await loadChains();
  };
  const fund = async () => {
    const units = parseAmount(amount.value, decimals);
    if (units === undefined) return noticeAmount(decimals);
    const added = `${formatUnits(units, decimals)} ${symbol}`;
    const to = payers[payer.value]?.address;
    await change("fund", { to, amount: units }, `${payer.value} has ${added} more.`);
  };
  const changes = [
    ["Mine a block", "mine", { blocks: 1 }, `${network} has a block more.`],
    ["+1 minute", "advance-time", { seconds: 60 }, `${network} is a minute later.`],
    ["+1 hour", "advance-time", { seconds: 3_600 }, `${network} is an hour later.`],
  ] as const;
  const date = new Date(time * 1000).toISOString().slice(0, 19).replace("T", " ");
  const gasMoney = (Number(BigInt(operatorGasMoney) / 10n ** 12n) / 1e6).toFixed(2);
  return (
    <section class="card" aria-label={network}>
      <h2>{network}</h2>
      <p class="soft">
        block {blockNumber} · {date} UTC · operator {gasMoney} {coinOf(network)} for gas
      </p>
      <div class="buttons">
        {changes.map(([name, path, body, done]) => (
          <button type="button" key={name} onClick={() => change(path, body, done)}>
            {name}
          </button>
        ))}
        <Select
          label={`Payer to fund on ${network}`}
          value={payer.value}
          options={Object.keys(payers)}
          onChange={(name) => (payer.value = name)}
        />
        <input
          type="text"
          inputMode="decimal"
          class="amount-input"
          aria-label={`${symbol} for the payer on ${network}`}
          value={amount.value}
          onInput={(event) => (amount.value = event.currentTarget.value)}
        />
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
