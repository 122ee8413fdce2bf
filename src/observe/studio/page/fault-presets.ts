import type { FaultView } from "./local-service.ts";

/** A fault that is set by one click: what happens, and how that is asked for. */
export type FaultPreset = {
  name: string;
  means: string;
  /** What `POST /harness/faults/add` is asked. */
  fault: { network: string; kind: string } & Record<string, string | number>;
};

/** The facilitator in the place of a network. */
export const facilitator = "facilitator";

/** The trouble that most people want to see, on a network. */
export function presetsOf(network: string): readonly FaultPreset[] {
  const name = network.replace(/\b[a-z]/g, (letter) => letter.toUpperCase()).replaceAll("-", " ");
  return [
    {
      name: `${name} is down`,
      means: "Its node ends every connection: payments get no verdict.",
      fault: { network, kind: "reset" },
    },
    {
      name: "Answer lost once",
      means: "The next settle is done, and its answer never reaches the shop.",
      fault: { network: facilitator, kind: "answer-lost", method: "settle", times: 1 },
    },
    {
      name: `${name} is slow`,
      means: "Each answer of its node comes two seconds late.",
      fault: { network, kind: "delay", ms: 2_000 },
    },
    {
      name: `${name} stands still`,
      means: "No block is mined: settles stay pending until it ends.",
      fault: { network, kind: "hold-blocks" },
    },
    {
      name: "No gas money",
      means: `The operator cannot pay for transactions on ${network}.`,
      fault: { network, kind: "empty-operator" },
    },
    {
      name: "Facilitator overloaded once",
      means: "The next request is answered with 503.",
      fault: { network: facilitator, kind: "status", status: 503, times: 1 },
    },
  ];
}

/** Whether a fault is one that a preset has set. */
export function isOfPreset(set: FaultView, { fault }: FaultPreset): boolean {
  return !set.usedUp && Object.entries(fault).every(([name, value]) => set[name] === value);
}

/** What is shown of every fault. */
const common = ["id", "network", "kind", "fired", "usedUp"];

/** What was given for a fault: `ms 200, times 1`. */
export function detailsOf(fault: FaultView): string {
  const details = Object.entries(fault).filter(([name]) => !common.includes(name));
  return details.map(([name, value]) => `${name} ${String(value)}`).join(", ");
}

/** How often a fault has hit, and whether that was all. */
export function countOf({ fired, usedUp }: Pick<FaultView, "fired" | "usedUp">): string {
  return `${usedUp ? "used up, " : ""}hit ${fired} ${fired === 1 ? "time" : "times"}`;
}
