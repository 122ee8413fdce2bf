import type { NetworkName } from "../protocol/networks.ts";

/** A variable of the environment, as it is described to whoever sets it. */
export type Variable = {
  name: string;
  /** What it is, in a sentence or two. */
  summary: string;
  /** What it is when it is not set; undefined when there is no such value. */
  otherwise?: string;
  example: string;
};

/** Every variable that `serve`, `doctor` and `deploy` read. docs/guides/operators.md has this table. */
export const variables = [
  {
    name: "BASE_RPC_URL",
    summary:
      "JSON-RPC URLs of a node of base, in order of preference, separated by commas. A network is served when it has one",
    otherwise: "base is not served",
    example: "https://base.example/v2/KEY,https://base-2.example",
  },
  {
    name: "BASE_SEPOLIA_RPC_URL",
    summary: "the same for base-sepolia",
    otherwise: "not served",
    example: "https://base-sepolia.example/v2/KEY",
  },
  {
    name: "OPTIMISM_RPC_URL",
    summary: "the same for optimism",
    otherwise: "not served",
    example: "https://optimism.example/v2/KEY",
  },
  {
    name: "OPTIMISM_SEPOLIA_RPC_URL",
    summary: "the same for optimism-sepolia",
    otherwise: "not served",
    example: "https://optimism-sepolia.example/v2/KEY",
  },
  {
    name: "POLYGON_RPC_URL",
    summary: "the same for polygon",
    otherwise: "not served",
    example: "https://polygon.example/v2/KEY",
  },
  {
    name: "FACILITATOR_CONTRACT_MAINNET",
    summary: "address of the facilitator contract on base, optimism and polygon; `x402-kit deploy` prints it",
    otherwise: "needed when one of them is served",
    example: "0x4020000000000000000000000000000000000001",
  },
  {
    name: "FACILITATOR_CONTRACT_TESTNET",
    summary:
      "address of the facilitator contract on base-sepolia and optimism-sepolia; another one than on the mainnets",
    otherwise: "needed when one of them is served",
    example: "0x4020000000000000000000000000000000000002",
  },
  {
    name: "OPERATOR_PRIVATE_KEY",
    summary: "key that sends settle transactions, on every network; several, separated by commas, take turns",
    otherwise: "needed, unless a remote signer has it",
    example: "0x and 64 hexadecimal digits",
  },
  {
    name: "OPERATOR_SIGNER_URL",
    summary: "where a remote signer answers `eth_signTransaction`, instead of OPERATOR_PRIVATE_KEY",
    otherwise: "no remote signer",
    example: "https://signer.internal:9000",
  },
  {
    name: "OPERATOR_ADDRESS",
    summary: "the accounts that the remote signer signs for, separated by commas",
    otherwise: "needed with OPERATOR_SIGNER_URL",
    example: "0x857b06519E91e3A54538791bDbb0E22373e36b66",
  },
  {
    name: "RECOVERER_PRIVATE_KEY",
    summary:
      "key with which `serve` recovers, by itself, payments that somebody else submitted directly to the token; not an operator's",
    otherwise: "they wait for `x402-kit recover`",
    example: "0x and 64 hexadecimal digits",
  },
  {
    name: "DEPLOYER_PRIVATE_KEY",
    summary: "key that `deploy` sends with; read by no other command",
    otherwise: "needed by `deploy`",
    example: "0x and 64 hexadecimal digits",
  },
  {
    name: "ASSETS",
    summary:
      "tokens besides USDC that may be paid with, as a JSON array; `name` and `version` are those of the token's EIP-712 domain",
    otherwise: "USDC alone",
    example:
      '[{"network":"base","address":"0x60a3E35Cc302bFA44Cb288Bc5a4F316Fdb1adb42","name":"EURC","version":"2","decimals":6}]',
  },
  {
    name: "CONFIRMATIONS",
    summary:
      "blocks that must hold a settlement, its own included, before it is called a success, per network",
    otherwise: "base=2,base-sepolia=1,optimism=2,optimism-sepolia=1,polygon=8",
    example: "polygon=8,base=2",
  },
  {
    name: "MAX_FEE_GWEI",
    summary: "the most that is paid per gas, in gwei, per network; above it transactions wait",
    otherwise: "base=5,base-sepolia=20,optimism=5,optimism-sepolia=20,polygon=1000",
    example: "base=0.5,polygon=400",
  },
  {
    name: "DATABASE_URL",
    summary:
      "where settlements, organizations and API keys are kept: an SQLite file, or Postgres for several instances",
    otherwise: "sqlite:./facilitator.db",
    example: "postgres://USER:PASSWORD@HOST/DATABASE",
  },
  {
    name: "API_KEY_PEPPER",
    summary:
      "secret that API keys are hashed with, 32 characters or more. The same on every instance; with another one all keys stop working",
    otherwise: "needed",
    example: "what `openssl rand -hex 32` prints",
  },
  { name: "HOST", summary: "IP address to listen on", otherwise: "127.0.0.1", example: "0.0.0.0" },
  { name: "PORT", summary: "port to listen on; 0 for any free one", otherwise: "4402", example: "8080" },
  {
    name: "TRUST_PROXY",
    summary:
      "which `X-Forwarded-For` is believed: `false` for none, the number of proxies in front, or their addresses or networks separated by commas",
    otherwise: "false",
    example: "10.0.0.0/8",
  },
  {
    name: "RATE_LIMIT_KEY",
    summary:
      "requests that are taken from one API key, as PER_SECOND/BURST: so many in the long run, and so many at once",
    otherwise: "200/5000",
    example: "50/500",
  },
  {
    name: "RATE_LIMIT_ADDRESS",
    summary: "the same for requests without a good API key from one address",
    otherwise: "20/5000",
    example: "5/100",
  },
  {
    name: "MAX_SETTLES",
    summary:
      "settles that may wait for their outcome at a time, some 20 KB each; further ones are turned away",
    otherwise: "4000",
    example: "1000",
  },
  {
    name: "METRICS_PORT",
    summary:
      "port on which metrics for Prometheus are served at `/metrics`, without a key; 0 for any free one",
    otherwise: "no metrics are served",
    example: "9464",
  },
  {
    name: "METRICS_HOST",
    summary: "IP address to serve the metrics on, which only their collector should reach",
    otherwise: "127.0.0.1",
    example: "10.0.0.5",
  },
  {
    name: "SETTLE_WAIT_MS",
    summary:
      "how long a settle waits for its outcome before it answers that it is under way, in milliseconds",
    otherwise: "80000 in protocol version 1, 45000 in version 2",
    example: "45000",
  },
  {
    name: "ANONYMOUS_VERIFY",
    summary: "`true` lets anybody verify without an API key",
    otherwise: "false",
    example: "false",
  },
  {
    name: "LOG_LEVEL",
    summary: "fatal, error, warn, info, debug, trace or silent; JSON lines on stderr",
    otherwise: "info",
    example: "debug",
  },
] as const satisfies readonly Variable[];

export type VariableName = (typeof variables)[number]["name"];

/** The variable that names a network's RPC URLs. */
export const rpcVariables: Readonly<Record<NetworkName, VariableName>> = {
  base: "BASE_RPC_URL",
  "base-sepolia": "BASE_SEPOLIA_RPC_URL",
  optimism: "OPTIMISM_RPC_URL",
  "optimism-sepolia": "OPTIMISM_SEPOLIA_RPC_URL",
  polygon: "POLYGON_RPC_URL",
};

/** The variable that names a tier's facilitator contract. */
export const contractVariables = {
  mainnet: "FACILITATOR_CONTRACT_MAINNET",
  testnet: "FACILITATOR_CONTRACT_TESTNET",
} as const satisfies Record<string, VariableName>;
