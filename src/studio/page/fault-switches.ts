/** A fault that is set and cleared by one click: `more` is what its request holds besides its kind. */
export type Switch = { kind: string; means: string; more?: object };

/** Faults that need no number, or one that is usual; docs/guides/faults.md has the others. */
export const ofChains: readonly Switch[] = [
  {
    kind: "answer-lost",
    means: "transactions arrive, and the node's answer is lost",
    more: { method: "eth_sendRawTransaction*" },
  },
  { kind: "delay", means: "every answer of the node comes 500 ms late", more: { ms: 500 } },
  { kind: "reset", means: "connections to the node are reset" },
  { kind: "rate-limited", means: "the node answers 429" },
  {
    kind: "error",
    means: "the node answers with an error",
    more: { code: -32_000, message: "header not found" },
  },
  { kind: "malformed", means: "the node answers with a page of HTML" },
  { kind: "stale-head", means: "the node is 10 blocks behind", more: { blocks: 10 } },
  { kind: "hang", means: "the node takes requests and never answers" },
  { kind: "hold-blocks", means: "no block is mined" },
  { kind: "empty-operator", means: "the operator has no money for gas" },
];

/** What stands in the place of a network for faults between a shop and the facilitator. */
export const facilitator = "facilitator";

export const ofFacilitator: readonly Switch[] = [
  { kind: "answer-lost", means: "settles are done, and their answers are lost", more: { method: "settle" } },
  { kind: "delay", means: "every answer comes 500 ms late", more: { ms: 500 } },
  { kind: "reset", means: "connections are reset, and nothing is done" },
  { kind: "rate-limited", means: "every request is answered 429" },
  { kind: "status", means: "every request is answered 503", more: { status: 503 } },
  { kind: "hang", means: "requests are taken and never answered" },
];
