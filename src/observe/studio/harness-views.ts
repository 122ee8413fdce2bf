/** A field of a fault, as a form asks for it. */
export type FaultField = {
  name: string;
  means: string;
  type: "integer" | "string" | "boolean";
  needed: boolean;
  /** True if it says which calls are hit, and not what happens to them. */
  isMatch: boolean;
  least: number | null;
  most: number | null;
  choices: readonly string[];
  example: string;
};

/** A kind of fault, as a form offers it. */
export type FaultDescription = {
  kind: string;
  means: string;
  /** Where it can be set: `node`, `chain` or `facilitator`. */
  places: readonly string[];
  /** False for what happens once and cannot be removed. */
  lasts: boolean;
  fields: readonly FaultField[];
};

/** The text about all faults: `GET /harness/faults/kinds`. */
export type FaultForm = {
  kinds: readonly FaultDescription[];
  /** The allowed values of `method` for faults of requests to the facilitator. */
  facilitatorRoutes: readonly string[];
};

/** How a local chain stands: `GET /harness/chains`. Balances are in the asset's smallest unit, gas money is in wei, both as text. */
export type ChainView = {
  network: string;
  blockNumber: number;
  /** Unix seconds. */
  time: number;
  balances: Record<string, string>;
  operatorGasMoney: string;
};
