import { Button, Select } from "./controls.tsx";
import { shorten } from "./format.ts";
import { Icon } from "./icons.tsx";
import { networkNames } from "./local-service.ts";
import { statusWords } from "./payment-status.ts";
import { filterBy, filters, paused, payers, rows, statusCounts, total } from "./payment-stream.ts";

/** More are found by the search; a menu of thousands is of no use. */
const mostPayers = 200;

/** What is shown of the payments. */
export function Toolbar() {
  const { q, network, payer, status } = filters.value;
  const known = payers.value
    .slice(0, mostPayers)
    .map(([address, name]) => [address, name ?? shorten(address)] as const);
  const counts = statusCounts.value;
  const all = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const chips: (readonly [status: string, word: string, count: number])[] = [
    ["", "All", all],
    ...[...counts]
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
