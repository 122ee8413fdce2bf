import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { formatSpan } from "../../../protocol/moments.ts";
import { formatAmount } from "../../../protocol/token-units.ts";
import type { ChannelView } from "../channel-views.ts";
import { Hash, now } from "./controls.tsx";
import { chainTimeOf, get, isLocal, loadChains, tokenOf } from "./local-service.ts";

/** The batch-settlement channels that were opened here, newest first. */
export const channels = signal<readonly ChannelView[]>([]);

async function loadChannels(): Promise<void> {
  channels.value = (await get<{ channels: ChannelView[] }>("/channels"))?.channels ?? channels.value;
}

const refreshEveryMs = 2_000;

let isDue = false;

/** Loads the channels soon, once for all calls until then: payments may arrive by the hundred. */
export function loadChannelsSoon(): void {
  if (isDue) return;
  isDue = true;
  setTimeout(() => {
    isDue = false;
    void loadChannels();
  }, refreshEveryMs);
}

export function ChannelsPane() {
  useEffect(() => {
    const load = () => Promise.all([loadChannels(), isLocal.value && loadChains()]);
    void load();
    const timer = setInterval(load, refreshEveryMs);
    return () => clearInterval(timer);
  }, []);
  return (
    <div class="pane">
      <header class="pane-head">
        <h2>Channels</h2>
        <p class="soft">Deposits that buyers spend by vouchers (scheme “batch-settlement”).</p>
      </header>
      {channels.value.map((channel) => (
        <Channel key={`${channel.network} ${channel.id}`} channel={channel} />
      ))}
    </div>
  );
}

function Channel({ channel }: { channel: ChannelView }) {
  const { id, network, payer, receiver, balance, claimed, signed, owed, withdrawal } = channel;
  const token = tokenOf(network);
  const unclaimed = signed === null ? 0n : BigInt(signed) - BigInt(claimed);
  const rows = [
    ["Balance", balance],
    ["Claimed", claimed],
    ["Signed by vouchers seen here", signed],
    ["Owed to the receiver", owed],
    ["Not claimed yet, at most", unclaimed > 0n ? `${unclaimed}` : null],
  ] as const;
  return (
    <section class="card" aria-label={`Channel ${id}`}>
      <h3>
        <Hash name="Channel" hex={id} /> <span class="chip">{network}</span>
      </h3>
      <p class="soft">
        <Hash name="Payer" hex={payer} /> to <Hash name="Receiver" hex={receiver} />
      </p>
      {withdrawal !== null && <Withdrawal network={network} {...withdrawal} isAtRisk={unclaimed > 0n} />}
      <table class="balances">
        <tbody>
          {rows.map(
            ([name, units]) =>
              units !== null && (
                <tr key={name}>
                  <th scope="row">{name}</th>
                  <td class="number">{formatAmount(units, token)}</td>
                </tr>
              ),
          )}
        </tbody>
      </table>
    </section>
  );
}

/** An announced withdrawal and the time left, by the chain's time if known. */
function Withdrawal(props: { network: string; amount: string; endsAt: number; isAtRisk: boolean }) {
  const { network, amount, endsAt, isAtRisk } = props;
  const left = endsAt - (chainTimeOf(network) ?? Math.floor(now.value / 1_000));
  const when = left > 0 ? `in ${formatSpan(BigInt(left))}` : "now";
  return (
    <p role="alert">
      The payer may take back {formatAmount(amount, tokenOf(network))} {when}.
      {isAtRisk && " What is not claimed by then may be lost."}
    </p>
  );
}
