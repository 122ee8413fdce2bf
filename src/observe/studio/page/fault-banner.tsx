import { Button } from "./controls.tsx";
import { countOf, detailsOf } from "./fault-presets.ts";
import { Icon } from "./icons.tsx";
import { activeFaults, clearFaults } from "./local-service.ts";
import { show } from "./page-route.ts";

const mostNamed = 3;

/** Says above every view that faults are set: without, what they do looks like a mistake of the shop. */
export function FaultBanner() {
  const active = activeFaults.value;
  if (active.length === 0) return null;
  return (
    <section class="fault-banner" aria-label="Active faults">
      <Icon name="fault" />
      <b>{active.length === 1 ? "A fault is active" : `${active.length} faults are active`}</b>
      <span class="which">
        {active.slice(0, mostNamed).map((fault) => (
          <span key={fault.id}>
            {fault.kind} on {fault.network} <span class="soft">{detailsOf(fault)}</span> · {countOf(fault)}
          </span>
        ))}
        {active.length > mostNamed && <span>and {active.length - mostNamed} more</span>}
      </span>
      <Button onClick={() => show("faults")}>Show</Button>
      <Button onClick={clearFaults}>{active.length === 1 ? "End it" : "End all"}</Button>
    </section>
  );
}
