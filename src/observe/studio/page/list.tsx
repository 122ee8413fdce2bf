import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { plural } from "../../../protocol/token-units.ts";
import type { PaymentSummary } from "../../timeline/payment-view.ts";
import { Ago, Amount, Badge, Button, Icon, Select } from "./controls.tsx";
import {
  formatBoth,
  formatMs,
  noteOf,
  shorten,
  statusOf,
  statusWords,
  titleOfNote,
  whoOf,
} from "./format.ts";
import { isLocal, networkNames, shopConnectedAt } from "./local-service.ts";
import { select, selectedId } from "./page-route.ts";
import {
  clearFilters,
  filterBy,
  filters,
  isFiltered,
  isRead,
  paused,
  payers,
  rows,
  statusCounts,
  total,
} from "./payment-stream.ts";
import { GuidePane } from "./setup-pane.tsx";

/** In pixels, for rows of one line, and of two lines if there is little room. */
const rowHeights = { wide: 40, narrow: 60 };
/** Rows rendered beyond the visible ones, so that fast scrolling shows no gaps. */
const beyond = 12;
/** From this list width on, in pixels, rows have one line. */
const wideFrom = 720;

const headings = ["Status", "Amount", "Payer", "Network", "Reason", "Took", "Time"];

/** The list of payments. Only the rows in view are rendered, so that thousands cost nothing. */
export function PaymentList() {
  const scroller = useRef<HTMLDivElement>(null);
  const top = useSignal(0);
  const height = useSignal(600);
  const isWide = useSignal(innerWidth >= wideFrom && selectedId.value === null);
  const list = rows.value;
  const rowHeight = isWide.value ? rowHeights.wide : rowHeights.narrow;

  useEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => {
      height.value = element.clientHeight;
      isWide.value = element.clientWidth >= wideFrom;
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  // Scrolls a row that was selected by keyboard into view.
  useEffect(() => {
    const element = scroller.current;
    const index = list.findIndex(({ id }) => id === selectedId.value);
    if (element === null || index === -1) return;
    const at = index * rowHeight;
    if (at < element.scrollTop) element.scrollTop = at;
    if (at + rowHeight > element.scrollTop + element.clientHeight - headHeight)
      element.scrollTop = at + rowHeight - element.clientHeight + headHeight;
  }, [selectedId.value, rowHeight]);

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
      {list.length > 0 && (
        <table
          class={isWide.value ? "payments" : "payments narrow"}
          aria-rowcount={list.length + 1}
          aria-label="Payments"
        >
          <thead>
            <tr>
              {headings.map((heading) => (
                <th key={heading} scope="col">
                  {heading}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            <tr class="gap" style={{ height: `${first * rowHeight}px` }} />
            {list.slice(first, last).map((payment, index) => (
              <Row key={payment.id} payment={payment} index={first + index} height={rowHeight} />
            ))}
            <tr class="gap" style={{ height: `${(list.length - last) * rowHeight}px` }} />
          </tbody>
        </table>
      )}
      {list.length === 0 && isRead.value && <NoRows />}
      {isBeginning() && <GuidePane />}
    </div>
  );
}

const headHeight = 34;

/** As many as `up` makes itself, plus a few tried from here. */
const fewPayments = 8;

/** True while the guide is shown below the first payments: until a shop connects, and if nothing is selected or filtered. */
function isBeginning(): boolean {
  const few = total.value > 0 && total.value <= fewPayments && shopConnectedAt.value === null;
  return few && isLocal.value && !isFiltered.value && selectedId.value === null;
}

/** Explains why the list is empty, and what to do. */
function NoRows() {
  const hidden = plural(total.value, "payment");
  if (isFiltered.value && total.value > 0) {
    return (
      <p class="empty">
        Nothing matches the search and filters; they hide {hidden}.{" "}
        <Button onClick={clearFilters}>Clear the filters</Button>
      </p>
    );
  }
  if (total.value > 0) return <p class="empty">The list is paused; {hidden} came since.</p>;
  if (isFiltered.value) {
    return (
      <p class="empty">
        No payments yet{filters.value.q === "" ? "" : `, and none of “${filters.value.q}”`}.{" "}
        <Button onClick={clearFilters}>Clear the filters</Button>
      </p>
    );
  }
  return <GuidePane />;
}

function priceTitle({ amount, charge, token }: PaymentSummary): string {
  if (amount === null) return "";
  const most = formatBoth(amount, token);
  return charge === null ? most : `${formatBoth(charge, token)} of at most ${most}`;
}

type RowProps = { payment: PaymentSummary; index: number; height: number };

function Row({ payment, index, height }: RowProps) {
  const { id, firstSeenAt, payer, network, amount, charge, token, verify, settle, faults } = payment;
  // For scheme “upto”, show the amount taken.
  const paid = charge ?? amount;
  const status = statusOf(payment);
  const note = noteOf(payment);
  const tookMs = (verify?.tookMs ?? 0) + (settle?.tookMs ?? 0);
  return (
    <tr
      class={`row ${status}`}
      style={{ height: `${height}px` }}
      aria-rowindex={index + 2}
      aria-selected={id === selectedId.value}
      onClick={() => select(id)}
    >
      <td class="status">
        <Badge status={status} />
      </td>
      <td class="price" title={priceTitle(payment)}>
        {paid !== null && <Amount amount={paid} token={token} />}
      </td>
      <td class="payer" title={payer ?? ""}>
        <button type="button" class="open" aria-current={id === selectedId.value}>
          {whoOf(payment)}
        </button>
      </td>
      <td class="network">{network ?? ""}</td>
      <td class="note" title={titleOfNote(payment)}>
        {faults.length > 0 && (
          <span class="hit" title={`Hit by ${faults.join(", ")}`}>
            <Icon name="fault" />
            <span class="unseen">hit by the fault </span>
            {faults.join(", ")}
          </span>
        )}
        <span class="said">{note}</span>
      </td>
      <td class="took">{tookMs === 0 ? "" : formatMs(tookMs)}</td>
      <td class="when">
        <Ago at={firstSeenAt} />
      </td>
    </tr>
  );
}

/** A longer menu is of no use; the search finds the rest. */
const mostPayers = 200;

/** The filters and settings of the list. */
export function Toolbar() {
  const { q, network, payer, status } = filters.value;
  const known = payers.value
    .slice(0, mostPayers)
    .map(([address, name]) => [address, name ?? shorten(address)] as const);
  const counts = statusCounts.value;
  const all = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const chips: (readonly [status: string, word: string, count: number])[] = [
    ["", "All", all],
    ...Array.from(counts)
      .filter(([one, count]) => count > 0 || one === status)
      .map(([one, count]) => [one, statusWords[one], count] as const),
  ];
  return (
    <section class="toolbar" aria-label="Filters">
      <div class="search">
        <Icon name="search" />
        <input
          type="search"
          placeholder="Payer, reason, transaction…"
          aria-label="Search payments"
          aria-keyshortcuts="/"
          id="search"
          value={q}
          onInput={(event) => filterBy({ q: event.currentTarget.value })}
        />
      </div>
      <fieldset class="tabs statuses" aria-label="Status">
        {chips.map(([one, word, count]) => (
          <Button
            key={one}
            aria-pressed={status === one}
            onClick={() => filterBy({ status: status === one ? "" : one })}
          >
            {word} <span class="count">{count.toLocaleString("en-US")}</span>
          </Button>
        ))}
      </fieldset>
      <Select
        label="Network"
        none="All networks"
        value={network}
        options={networkNames.value}
        onChange={(value) => filterBy({ network: value })}
      />
      <Select
        label="Payer"
        none="All payers"
        value={payer}
        options={known}
        onChange={(value) => filterBy({ payer: value })}
      />
      <Button aria-pressed={paused.value} title="p" onClick={() => (paused.value = !paused.value)}>
        {paused.value ? "Go on" : "Pause"}
      </Button>
      <span class="counts">
        {rows.value.length} of {total.value}
      </span>
    </section>
  );
}
