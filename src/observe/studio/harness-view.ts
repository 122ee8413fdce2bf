/* What a harness says of itself to the page. */

/** What the chains are; from `GET /harness`. */
export type HarnessView = {
  facilitator: { url: string };
  organization: { id: string; apiKey: string; recipient: string };
  payers: Record<string, { address: string; privateKey: string }>;
  networks: Record<
    string,
    {
      chainId: number;
      caip2: string;
      /** The mock has no chains. */
      rpcUrl?: string;
      facilitatorContract: string;
      /** Only of a network that is not built in. */
      nativeCoin?: string;
      asset: { address: string; name: string; version: string; decimals: number; symbol?: string };
    }
  >;
};

/** A chain, from `GET /harness/chains`. */
export type ChainView = {
  network: string;
  blockNumber: number;
  time: number;
  balances: Record<string, string>;
  operatorGasMoney: string;
};

/** A field of a fault, as a form asks for it. */
export type FaultField = {
  name: string;
  means: string;
  type: "integer" | "string" | "boolean";
  needed: boolean;
  /** Whether it says which calls are hit, and not what happens to them. */
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

/** What is said of all faults: `GET /harness/faults/kinds`. */
export type FaultForm = {
  kinds: readonly FaultDescription[];
  /** What `method` may be for faults of requests to the facilitator. */
  facilitatorRoutes: readonly string[];
};

/** A fault that is set, how often it has hit, whether it can hit once more, and what was given for it. */
export type FaultView = { id: string; network: string; kind: string; fired: number; usedUp?: true } & Record<
  string,
  string | number | boolean | undefined
>;
