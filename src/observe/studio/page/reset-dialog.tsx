import { signal } from "@preact/signals";
import { Button, Dialog } from "./controls.tsx";
import { act, faults, loadChains, loadFaults, networkNames } from "./local-service.ts";
import { total } from "./payment-stream.ts";

const isOpen = signal(false);

/** Puts everything back to the start, after it has been said what is lost. */
export function ResetButton() {
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
          {countOf(total.value, "payment")} in this list, with what happened to{" "}
          {total.value === 1 ? "it" : "them"}
        </li>
        <li>blocks, balances, approvals and moved time of {networkNames.value.join(", ")}</li>
        {set > 0 && (
          <li>
            {countOf(set, "fault")} that {set === 1 ? "is" : "are"} set here or by a test
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

function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
