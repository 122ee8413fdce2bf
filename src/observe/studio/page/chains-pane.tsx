import { signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { formatAmount, parseAmount, plural } from "../../../protocol/token-units.ts";
import type { ChainView } from "../harness-views.ts";
import { Button, Dialog, Select } from "./controls.tsx";
import {
  act,
  chains,
  coinOf,
  faults,
  harness,
  loadChains,
  loadFaults,
  networkNames,
  tokenOf,
} from "./local-service.ts";
import { sayAmount } from "./pay-dialog.tsx";
import { total } from "./payment-stream.ts";

const refreshEveryMs = 2_000;

/** The local chains: block, time and balances, and controls to change them. */
export function ChainsPane() {
  useEffect(() => {
    void loadChains();
    const timer = setInterval(loadChains, refreshEveryMs);
    return () => clearInterval(timer);
  }, []);
  return (
    <div class="pane">
      <header class="pane-head">
        <h2>Chains</h2>
        <p class="soft">The local chains: block, time and balances, and what moves them.</p>
        <ResetButton />
      </header>
      {chains.value.map((chain) => (
        <Chain key={chain.network} chain={chain} />
      ))}
    </div>
  );
}

function Chain({ chain: { network, blockNumber, time, balances, operatorGasMoney } }: { chain: ChainView }) {
  const payer = useSignal("empty");
  const amount = useSignal("1");
  const { symbol, decimals } = tokenOf(network);
  const payers = harness.value?.payers ?? {};
  const change = async (path: string, body: object, done: string) => {
    await act(`/harness/${path}`, { network, ...body }, done);
    await loadChains();
  };
  const fund = async () => {
    const units = parseAmount(amount.value, decimals);
    if (units === undefined) return sayAmount(decimals);
    const added = formatAmount(units, { symbol, decimals });
    const to = payers[payer.value]?.address;
    await change("fund", { to, amount: units, units: true }, `${payer.value} has ${added} more.`);
  };
  const changes = [
    ["Mine a block", "mine", { blocks: 1 }, `${network} has a block more.`],
    ["+1 minute", "advance-time", { seconds: 60 }, `${network} is a minute later.`],
    ["+1 hour", "advance-time", { seconds: 3_600 }, `${network} is an hour later.`],
  ] as const;
  const date = new Date(time * 1000).toISOString().slice(0, 19).replace("T", " ");
  const gasMoney = formatAmount(BigInt(operatorGasMoney) / 10n ** 14n, {
    symbol: coinOf(network),
    decimals: 4,
  });
  return (
    <section class="card" aria-label={network}>
      <h3>
        {network} <span class="chip">block {blockNumber.toLocaleString("en-US")}</span>
      </h3>
      <p class="soft">
        {date} UTC · operator {gasMoney} for gas
      </p>
      <div class="buttons">
        {changes.map(([name, path, body, done]) => (
          <Button key={name} onClick={() => change(path, body, done)}>
            {name}
          </Button>
        ))}
      </div>
      <div class="buttons">
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
        <Button onClick={fund}>Fund {symbol}</Button>
      </div>
      <table class="balances">
        <caption>Balances in {symbol}</caption>
        <tbody>
          {Object.entries(balances).map(([name, units]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td class="number">{formatAmount(units, { symbol: "", decimals }).trim()}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

const isOpen = signal(false);

/** Resets everything to the start, after a dialog that lists what is lost. */
function ResetButton() {
  return (
    <>
      <Button class="danger" onClick={() => (isOpen.value = true)}>
        Reset…
      </Button>
      {isOpen.value && <ResetDialog />}
    </>
  );
}

function ResetDialog() {
  const close = () => (isOpen.value = false);
  const reset = async () => {
    close();
    await act("/harness/reset", {}, "Everything is as it was at the start.");
    await Promise.all([loadFaults(), loadChains()]);
  };
  const set = faults.value.length;
  return (
    <Dialog title="Reset everything?" onClose={close}>
      <p>Chains and ledger go back to where they were at the start. What is lost:</p>
      <ul>
        <li>
          {plural(total.value, "payment")} in this list, with what happened to{" "}
          {total.value === 1 ? "it" : "them"}
        </li>
        <li>blocks, balances, approvals and moved time of {networkNames.value.join(", ")}</li>
        {set > 0 && (
          <li>
            {plural(set, "fault")} that {set === 1 ? "is" : "are"} set here or by a test
          </li>
        )}
      </ul>
      <p class="soft">A shop that is connected need not be started again.</p>
      <div class="buttons end">
        <Button onClick={close}>Keep it</Button>
        <Button class="danger filled" onClick={reset}>
          Reset everything
        </Button>
      </div>
    </Dialog>
  );
}
