import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { timeFields } from "../../../methods/exact-eip3009/payment-times.ts";
import { chainTimeOf, draft } from "./state.ts";
import { describeTime, parseTime, timeForms } from "./times.ts";

/** What the times of the form are: in seconds, as dates, and from the chain's time, which goes on. */
export function TimesPreview({ network }: { network: string }) {
  const tick = useSignal(0);
  useEffect(() => {
    const timer = setInterval(() => tick.value++, 1_000);
    return () => clearInterval(timer);
  }, []);
  void tick.value;
  const now = chainTimeOf(network);
  const tell = (name: string, text: string) => {
    const time = parseTime(text);
    if (time === undefined) return <span class="outcome refused">{`${name}: a time is ${timeForms}`}</span>;
    return (
      <span>
        {name} <b>{describeTime(time, now)}</b>
      </span>
    );
  };
  return (
    <div id="times" class="times">
      {timeFields.map(({ name, label }) => tell(label, draft.value.times[name]))}
    </div>
  );
}
