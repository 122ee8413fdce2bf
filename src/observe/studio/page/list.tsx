import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { formatAmount } from "../../../protocol/token-units.ts";
import type { OperationView, PaymentSummary } from "../payment-view.ts";
import { Button } from "./controls.tsx";
import { formatBoth, formatMs, formatTime, shorten } from "./format.ts";
import {
  atThisPlace,
  clearFilters,
  command,
  harness,
  isFiltered,
  isLocal,
  kindOf,
  rows,
  select,
  selectedId,
  total,
} from "./page-state.ts";

const rowHeight = 32;
/** Rows beyond the visible ones, so that fast scrolling shows no gaps. */
const beyond = 12;

/** The payments. Only the rows in view are in the page, so that thousands cost nothing. */
export function PaymentList() {
  const scroller = useRef<HTMLDivElement>(null);
  const top = useSignal(0);
  const height = useSignal(600);
  const list = rows.value;

  useEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => {
      height.value = element.clientHeight;
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  // A row that is chosen by keyboard comes into view.
  useEffect(() => {
    const element = scroller.current;
    const index = list.findIndex(({ id }) => id === selectedId.value);
    if (element === null || index === -1) return;
    const at = index * rowHeight;
    if (at < element.scrollTop) element.scrollTop = at;
    if (at + rowHeight > element.scrollTop + element.clientHeight)
      element.scrollTop = at + rowHeight - element.clientHeight;
  }, [selectedId.value]);

  const first = Math.max(0, Math.floor(top.value / rowHeight) - beyond);
  const last = Math.min(list.length, Math.ceil((top.value + height.value) / rowHeight) + beyond);
  return (
    <div
      class="scroller"
      ref={scroller}
      onScroll={(event) => {
        top.value = event.currentTarget.scrollTop;
      }}
    >
      <table aria-rowcount={list.length + 1} aria-label="Payments">
        <thead>
          <tr>
            {["Time", "Payer", "Network", "Amount", "Verify", "Settle", "Took"].map((heading) => (
              <th key={heading} scope="col">
                {heading}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <tr style={{ height: `${first * rowHeight}px` }} />
          {list.slice(first, last).map((payment, index) => (
            <Row key={payment.id} payment={payment} index={first + index} />
          ))}
          <tr style={{ height: `${(list.length - last) * rowHeight}px` }} />
        </tbody>
      </table>
      {list.length === 0 && <NoRows />}
    </div>
  );
}

/** Why no payment is listed, and what to do. */
function NoRows() {
  const hidden = `${total.value} ${total.value === 1 ? "payment" : "payments"}`;
  if (isFiltered.value && total.value > 0) {
    return (
      <p class="empty">
        Nothing matches the search and filters; they hide {hidden}.{" "}
        <Button onClick={clearFilters}>Clear the filters</Button>
      </p>
    );
  }
  if (total.value > 0) return <p class="empty">The list is paused; {hidden} came since.</p>;
  return isLocal.value ? (
    <p class="empty">
      No payments yet. Make one: <code>{`${command} pay${atThisPlace}`}</code>, or “Pay” below.
    </p>
  ) : (
    <p class="empty">
      No payments yet. What is sent to <code>{harness.value?.facilitator.url}</code> is shown here.
    </p>
  );
}

function Row({ payment, index }: { payment: PaymentSummary; index: number }) {
  const { id, firstSeenAt, payer, payerName, network, amount, token, verify, settle, unrouted } = payment;
  const { status } = settle ?? verify ?? { status: null };
  // A request without a good key is refused before anything of it is read.
  const unread = status === 401 ? "not read" : "unreadable";
  const asked = unrouted === null ? unread : `${unrouted.method} ${unrouted.path}`;
  return (
    <tr
      class={`row ${kindOf(payment)}`}
      style={{ height: `${rowHeight}px` }}
      aria-rowindex={index + 2}
      aria-selected={id === selectedId.value}
      onClick={() => select(id)}
    >
      <td class="time">{formatTime(firstSeenAt)}</td>
      <td title={payer ?? asked}>
        <button type="button" class="open" aria-current={id === selectedId.value}>
          {payerName ?? (shorten(payer) || asked)}
        </button>
      </td>
      <td>{network ?? ""}</td>
      <td class="number" title={amount === null ? "" : formatBoth(amount, token)}>
        {amount === null ? "" : formatAmount(amount, token)}
      </td>
      {unrouted === null ? (
        <>
          <Outcome operation={verify} />
          <Outcome operation={settle} isSettled={payment.settledAt !== null} />
        </>
      ) : (
        <td colSpan={2}>
          <span class="outcome refused" title={unrouted.message}>
            {unrouted.status}
          </span>
        </td>
      )}
      <td class="number">{formatMs((verify?.tookMs ?? 0) + (settle?.tookMs ?? 0))}</td>
    </tr>
  );
}

/** The newest outcome of an operation, after that of a payment that was settled before. */
function Outcome({ operation, isSettled }: { operation: OperationView | null; isSettled?: boolean }) {
  if (operation === null) return <td class="none">–</td>;
  const { outcome, reason, message, count, at } = operation;
  const shown = (reason ?? outcome).replace(/^invalid_(exact_evm_payload_)?(authorization_)?/, "");
  const more = [at === null ? (reason ?? outcome) : `${formatTime(at)} ${reason ?? outcome}`, message ?? []];
  return (
    <td title={more.flat().join(": ")}>
      {isSettled === true && outcome !== "settled" && <span class="outcome settled">settled, then </span>}
      <span class={`outcome ${outcome}`}>{breakable(shown)}</span>
      {count > 1 && <span class="count"> ×{count}</span>}
    </td>
  );
}

/** A name that may go on in a second line where it has an underscore. */
function breakable(name: string): ComponentChildren {
  return name.split("_").flatMap((part, index) => (index === 0 ? [part] : ["_", <wbr key={index} />, part]));
}
