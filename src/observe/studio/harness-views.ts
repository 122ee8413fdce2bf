/** A field of a fault, as a form shows it. */
export type FaultField = {
  name: string;
  means: string;
  type: "integer" | "string" | "boolean";
  needed: boolean;
  /** True if it selects the calls to hit, rather than what happens to them. */
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
  /** False for a fault that happens once and cannot be removed. */
  lasts: boolean;
  fields: readonly FaultField[];
};

/** Describes all faults: `GET /harness/faults/kinds`. */
export type FaultForm = {
  kinds: readonly FaultDescription[];
  /** The allowed values of `method` for faults of requests to the facilitator. */
  facilitatorRoutes: readonly string[];
};

/** A local chain in `GET /harness/chains`. Balances are in the asset's smallest unit, gas money in wei. */
export type ChainView = {
  network: string;
  blockNumber: number;
  /** Unix seconds. */
  time: number;
  balances: Record<string, string>;
  operatorGasMoney: string;
};
