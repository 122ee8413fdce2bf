import { dialects } from "../protocol/catalogue.ts";
import { gasSponsorings } from "../protocol/checks.ts";
import {
  type BuiltInNetworkName,
  type NetworkName,
  type NetworkRegistry,
  type NetworkTier,
  networkNames,
} from "../protocol/networks.ts";
import { payToPolicies } from "../protocol/signed-payment.ts";
import { strictnesses } from "../protocol/strictness.ts";
import { formatUnits } from "../protocol/token-units.ts";
import { networkDefaults, readAssets, readLocalAssets } from "./known-networks.ts";
import { settleWaitBoundsMs, settleWaitDefaultsMs } from "./serve-config.ts";
import {
  logLevels,
  readAddress,
  readApiKey,
  readBearerToken,
  readBuilderCode,
  readCoins,
  readCoinsOrNone,
  readContractList,
  readCorsOrigins,
  readDatabaseUrl,
  readFacilitatorUrl,
  readGwei,
  readHost,
  readHttpUrl,
  readList,
  readNetworkKeys,
  readOneOf,
  readPepper,
  readPerNetwork,
  readPrivateKey,
  readRate,
  readSwitch,
  readTrustProxy,
  readWholeNumber,
} from "./values.ts";

/**
 * The commands that read a variable. `database` stands for those that open the database, `keys` for those that create
 * API keys.
 */
export type VariableUser =
  | "serve"
  | "deploy"
  | "recover"
  | "database"
  | "keys"
  | "up"
  | "mock"
  | "running up"
  | "buy"
  | "channels"
  | "conformance";

/** An environment variable. Its name is its key in {@link variables}. */
export type Variable = {
  /** Its meaning, in a sentence or two. */
  summary: string;
  read: (text: string, known?: NetworkRegistry) => unknown;
  /** The value if it is unset, as a user would write it. */
  default?: string;
  /** The effect of leaving it unset, for a variable without a default. */
  unset?: string;
  example: string;
  /** Never shown. Can be read from a file instead, whose path is in `NAME_FILE`. */
  secret?: true;
  usedBy: readonly VariableUser[];
};

const keyExample = "0x and 64 hexadecimal digits";
const readPort = readWholeNumber(0, 65_535);
const allCommandsWithRpc = ["serve", "deploy", "recover", "up"] as const;
const allCommandsWithContracts = ["serve", "deploy", "recover", "up", "mock"] as const;

/** Formats defaults like CONFIRMATIONS and MAX_FEE_GWEI: `base=2,polygon=8`. */
function perNetwork(value: (name: BuiltInNetworkName) => number | bigint | string): string {
  return networkNames.map((name) => `${name}=${value(name)}`).join(",");
}

function rpcUrls(network: NetworkName, summary = `the same for ${network}`) {
  return {
    summary,
    // Compared in normal form, so that one endpoint does not count as two.
    read: readList("URL", readHttpUrl, (url) => URL.parse(url)?.href.replace(/#.*/, "").replace(/\/$/, "")),
    unset: `${network} is not served`,
    example: `https://${network}.example/v2/KEY`,
    secret: true,
    usedBy: allCommandsWithRpc,
  } as const satisfies Variable;
}

/** All variables that commands read. The parser, `--help` and `.env.example` are derived from this table, in this order. */
export const variables = {
  BASE_RPC_URL: {
    ...rpcUrls("base"),
    summary:
      "JSON-RPC URLs of a node of base, in order of preference, separated by commas. A network is served when it has one",
    example: "https://base.example/v2/KEY,https://base-2.example",
  },
  BASE_SEPOLIA_RPC_URL: rpcUrls("base-sepolia"),
  OPTIMISM_RPC_URL: rpcUrls("optimism"),
  OPTIMISM_SEPOLIA_RPC_URL: rpcUrls("optimism-sepolia"),
  POLYGON_RPC_URL: rpcUrls("polygon"),
  FACILITATOR_CONTRACT_MAINNET: {
    summary:
      "address of the facilitator contract on base, optimism and polygon; `x402-kit deploy` prints it. More addresses, separated by commas, are former contracts: they are not offered, and still settle what payers signed for them",
    read: readContractList,
    unset: "needed when one of them is served",
    example: "0x4020000000000000000000000000000000000001",
    usedBy: allCommandsWithContracts,
  },
  FACILITATOR_CONTRACT_TESTNET: {
    summary: "the same on base-sepolia and optimism-sepolia; no address may be that of a mainnet",
    read: readContractList,
    unset: "needed when one of them is served",
    example: "0x4020000000000000000000000000000000000002",
    usedBy: allCommandsWithContracts,
  },
  NETWORKS_FILE: {
    summary:
      "JSON file with networks besides the five; each is served when its RPC variable is set, such as MY_CHAIN_RPC_URL for my-chain",
    read: (path) => path,
    unset: "only the five",
    example: "networks.json",
    usedBy: ["serve", "deploy", "recover", "up", "mock"],
  },
  OPERATOR_PRIVATE_KEY: {
    summary: "key that sends settle transactions, on every network; several, separated by commas, take turns",
    read: readList("key", readPrivateKey),
    unset: "needed, unless a remote signer has it",
    example: keyExample,
    secret: true,
    usedBy: ["serve", "deploy"],
  },
  OPERATOR_SIGNER_URL: {
    summary: "where a remote signer answers `eth_signTransaction`, instead of OPERATOR_PRIVATE_KEY",
    read: readHttpUrl,
    unset: "no remote signer",
    example: "https://signer.internal:9000",
    secret: true,
    usedBy: ["serve"],
  },
  OPERATOR_ADDRESS: {
    summary: "the accounts that the remote signer signs for, separated by commas",
    read: readList("address", readAddress),
    unset: "needed with OPERATOR_SIGNER_URL",
    example: "0x857b06519E91e3A54538791bDbb0E22373e36b66",
    usedBy: ["serve", "deploy"],
  },
  RECOVERER_PRIVATE_KEY: {
    summary:
      "key with which `serve` recovers, by itself, payments that were submitted directly to the token; not an operator's",
    read: readPrivateKey,
    unset: "they wait for `x402-kit recover`",
    example: keyExample,
    secret: true,
    usedBy: ["serve", "deploy", "recover"],
  },
  SPONSOR_PRIVATE_KEY: {
    summary:
      "key of an account that gives payers the gas money that an approval by a transaction of their own lacks (`erc20ApprovalGasSponsoring`), within MAX_GIFT and DAILY_GIFTS; used for nothing else, by nobody else. Keep no more on it than may be given away",
    read: readPrivateKey,
    unset: "payers pay for their approvals",
    example: keyExample,
    secret: true,
    usedBy: ["serve"],
  },
  AUTHORIZER_PRIVATE_KEY: {
    summary:
      "key that signs claims and refunds of channels (scheme batch-settlement) for shops without a key of their own, each for the organization alone that opened the channel. It can claim up to each signed voucher, and refund. `/supported` shows its address. Former ones behind it, separated by commas, sign for the channels that were opened with them. `base=0x…` is for that network, where it comes first",
    read: readNetworkKeys,
    unset: "shops sign with a key of their own",
    example: keyExample,
    secret: true,
    usedBy: ["serve"],
  },
  DEPLOYER_PRIVATE_KEY: {
    summary: "key that `deploy` sends with; read by no other command",
    read: readPrivateKey,
    unset: "needed by `deploy`",
    example: keyExample,
    secret: true,
    usedBy: ["deploy"],
  },
  ASSETS: {
    summary:
      'tokens besides USDC that may be paid with, as a JSON array; `name` and `version` are those of the token\'s EIP-712 domain. One without `version` is paid by Permit2 alone; `transfers` limits how: `["eip3009"]`, `["permit2"]`',
    read: readAssets,
    unset: "USDC alone",
    example:
      '[{"network":"base","address":"0x60a3E35Cc302bFA44Cb288Bc5a4F316Fdb1adb42","name":"EURC","version":"2","decimals":6}]',
    usedBy: ["serve", "recover"],
  },
  LOCAL_ASSETS: {
    summary:
      "where the mock token of `up` stands, per network, as NETWORK=ADDRESS,NAME,VERSION,DECIMALS; several, separated by semicolons. What is left out after the address is as USDC has it",
    read: readLocalAssets,
    unset: "at the address of USDC",
    example: "base=0x60a3E35Cc302bFA44Cb288Bc5a4F316Fdb1adb42,EURC,2,6",
    usedBy: ["up"],
  },
  CONFIRMATIONS: {
    summary: "how many blocks, counting its own, a settlement needs before it is a success, per network",
    read: readPerNetwork(readWholeNumber(1, 1_000)),
    default: perNetwork((name) => networkDefaults[name].confirmations),
    example: "polygon=8,base=2",
    usedBy: ["serve", "recover"],
  },
  SUCCESS_ENDPOINTS: {
    summary:
      "how many RPC endpoints must have the receipt of a payment before it is called settled, 1 or 2; where a network has one URL, that one",
    read: readWholeNumber(1, 2),
    default: "2",
    example: "1",
    usedBy: ["serve", "recover"],
  },
  MAX_FEE_GWEI: {
    summary:
      "the highest price per gas that is paid, in gwei, per network; while the network asks for more, transactions wait",
    read: readPerNetwork(readGwei),
    default: perNetwork((name) => networkDefaults[name].maxFeePerGas / 1_000_000_000n),
    example: "base=0.5,polygon=400",
    usedBy: ["serve", "deploy", "recover"],
  },
  MAX_TRANSACTION_COST: {
    summary:
      "the most that one settle transaction may cost, gas limit times fee, in the coin of its network; payments that do not fit wait, or get 503",
    read: readPerNetwork(readCoins),
    unset: "as much as the operator has",
    example: "base=0.01,polygon=5",
    usedBy: ["serve"],
  },
  MAX_GIFT: {
    summary:
      "the most gas money that the sponsor gives to one payer, once for each token, in the coin of its network; nothing on networks that are not named",
    read: readPerNetwork(readCoins),
    unset: "nothing",
    example: "base=0.0001,polygon=0.05",
    usedBy: ["serve"],
  },
  DAILY_GIFTS: {
    summary:
      "the most gas money that payers are given on one day (UTC), in the coin of its network, no more of it for one organization than is left for others; the gas of the sponsor's own transactions comes on top. Nothing on networks that are not named",
    read: readPerNetwork(readCoins),
    unset: "nothing",
    example: "base=0.01,polygon=5",
    usedBy: ["serve"],
  },
  DAILY_GAS_BUDGET: {
    summary:
      "the most that settling for one organization may cost in gas per day (UTC), in the coin of its network, per network; `none` for no bound. An organization's own budget takes its place. Payers with code, and gas money for approvals, may use a quarter of it",
    read: readPerNetwork(readCoinsOrNone),
    default: perNetwork((name) => formatUnits(networkDefaults[name].dailyGasBudget, 18)),
    example: "base=0.5,polygon=none",
    usedBy: ["serve"],
  },
  GAS_HORIZON_PAYMENTS: {
    summary:
      "`doctor`, the log, `/readyz` and `x402_operator_gas_money_low` warn of an operator whose gas money pays for fewer settlements than this at present fees",
    read: readWholeNumber(1, 10_000_000),
    default: "500",
    example: "5000",
    usedBy: ["serve"],
  },
  MAX_VALIDITY_SECONDS: {
    summary:
      "how long a payment may be valid from now, in seconds; until it expires it is watched and its value reserved",
    read: readWholeNumber(60, 31_536_000),
    default: "86400",
    example: "3600",
    usedBy: ["serve"],
  },
  PAY_TO: {
    summary:
      "where payments may go: `contract`, to the facilitator contract alone, which forwards them to the organization's recipient; `recipients`, also straight to the organization's own recipient; `any`, also straight to any other address, as public facilitators have it",
    read: readOneOf(payToPolicies),
    default: "contract",
    example: "recipients",
    usedBy: ["serve"],
  },
  STRICTNESS: {
    summary:
      "what decides about a payment where the specification does not: `spec` takes what it does not forbid, and warns in the answer of what public facilitators refuse; `reference` follows the public reference facilitator, needs PAY_TO=any, and has no MAX_VALIDITY_SECONDS unless that is set",
    read: readOneOf(strictnesses),
    default: "spec",
    example: "reference",
    usedBy: ["serve"],
  },
  REASONS: {
    summary:
      "the names that `invalidReason` and `errorReason` have: `spec`, those of the specification, and of a settle in version 1 its five codes; `reference`, those of the public reference facilitator, which also names a transaction that was reverted. `nextAction` and `situation` are the same by both",
    read: readOneOf(dialects),
    default: "spec",
    example: "reference",
    usedBy: ["serve"],
  },
  GAS_SPONSORING: {
    summary:
      "which approvals of Permit2 are submitted for payers who have no gas, by the names of the extensions of x402, separated by commas: `eip2612GasSponsoring`, which costs the operator some 40,000 gas more for such a payment; `erc20ApprovalGasSponsoring`, transactions of the payers' own, which they pay for, or a sponsor (SPONSOR_PRIVATE_KEY)",
    read: readList("extension", readOneOf(gasSponsorings)),
    unset: "none: payers approve Permit2 themselves",
    example: "eip2612GasSponsoring",
    usedBy: ["serve"],
  },
  WALLET_FACTORIES: {
    summary:
      "contracts that may deploy a payer's smart wallet together with its first payment (ERC-6492), on every network, separated by commas. Payers choose what is called of them, for up to 1,000,000 gas of the operator; it is done by an account without any rights",
    read: readList("address", readAddress, (address) => address.toLowerCase()),
    unset: "none: wallets that are not deployed cannot pay",
    example: "0x5FbDB2315678afecb367f032d93F642f64180aa3",
    usedBy: ["serve"],
  },
  BUILDER_CODE: {
    summary:
      "the facilitator's own builder code (ERC-8021), 1 to 32 of `a` to `z`, digits and `_`: it is appended to the calldata of every transaction that settles payments, beside the codes that payments bring by the extension `builder-code`",
    read: readBuilderCode,
    unset: "none; codes of payments are appended all the same",
    example: "bc_my_facilitator",
    usedBy: ["serve"],
  },
  ALLOW_ZERO_VALUE: {
    summary: "`true` settles payments of 0 too, which cost gas and pay nothing",
    read: readSwitch,
    default: "false",
    example: "false",
    usedBy: ["serve"],
  },
  DATABASE_URL: {
    summary:
      "where settlements, organizations and API keys are kept: an SQLite file, or Postgres for several instances",
    read: readDatabaseUrl,
    default: "sqlite:./facilitator.db",
    example: "postgres://USER:PASSWORD@HOST/DATABASE",
    secret: true,
    usedBy: ["serve", "recover", "database"],
  },
  API_KEY_PEPPER: {
    summary:
      "secret that API keys are hashed with, 32 characters or more. The same on every instance; with another one all keys stop working",
    read: readPepper,
    unset: "needed",
    example: "what `openssl rand -hex 32` prints",
    secret: true,
    usedBy: ["serve", "keys"],
  },
  HOST: {
    summary: "IP address to listen on",
    read: readHost,
    default: "127.0.0.1",
    example: "0.0.0.0",
    usedBy: ["serve", "up", "mock"],
  },
  PORT: {
    summary: "port to listen on; 0 for any free one",
    read: readPort,
    default: "4402",
    example: "8080",
    usedBy: ["serve", "up", "mock"],
  },
  CORS_ORIGINS: {
    summary:
      "origins of web pages that may call the API, separated by commas, or `*` for all; no cookies are read",
    read: readCorsOrigins,
    unset: "no page of another origin may",
    example: "https://shop.example",
    usedBy: ["serve", "up", "mock"],
  },
  TRUST_PROXY: {
    summary:
      "which `X-Forwarded-For` is believed: `false` for none, the number of proxies in front, or their addresses or networks separated by commas",
    read: readTrustProxy,
    default: "false",
    example: "10.0.0.0/8",
    usedBy: ["serve"],
  },
  // A shop with 2,000 concurrent buyers verifies and settles for each of them. Callers without a valid key need few
  // requests, but many of them may share an address.
  RATE_LIMIT_KEY: {
    summary:
      "request limit of one API key as PER_SECOND/BURST: how many a second in the long run, and how many at once",
    read: readRate,
    default: "200/5000",
    example: "50/500",
    usedBy: ["serve"],
  },
  RATE_LIMIT_ADDRESS: {
    summary: "the same for requests from one address without a valid API key",
    read: readRate,
    default: "20/5000",
    example: "5/100",
    usedBy: ["serve"],
  },
  MAX_SETTLES: {
    summary:
      "how many settles may wait for their outcome at the same time, some 20 KB of memory each; further ones are turned away. One organization may take seven eighths of them",
    read: readWholeNumber(1, 100_000),
    default: "4000",
    example: "1000",
    usedBy: ["serve"],
  },
  METRICS_PORT: {
    summary:
      "port on which metrics for Prometheus are served at `/metrics`, without a key; 0 for any free one",
    read: readPort,
    unset: "no metrics are served",
    example: "9464",
    usedBy: ["serve"],
  },
  METRICS_HOST: {
    summary: "IP address to serve the metrics on, which only their collector should reach",
    read: readHost,
    default: "127.0.0.1",
    example: "10.0.0.5",
    usedBy: ["serve"],
  },
  ADMIN_PORT: {
    summary:
      "port on which operators can look at the newest payments: `/payments`, `/payments/{id}`, `/events`; 0 for any free one",
    read: readPort,
    unset: "there is no such listener",
    example: "4403",
    usedBy: ["serve"],
  },
  ADMIN_HOST: {
    summary: "IP address to show them on, which only operators should reach",
    read: readHost,
    default: "127.0.0.1",
    example: "10.0.0.5",
    usedBy: ["serve"],
  },
  ADMIN_TOKEN: {
    summary: "secret that operators send there as `Authorization: Bearer TOKEN`, 32 characters or more",
    read: readBearerToken,
    unset: "needed with ADMIN_PORT",
    example: "what `openssl rand -hex 32` prints",
    secret: true,
    usedBy: ["serve"],
  },
  SETTLE_WAIT_MS: {
    summary:
      "how long a settle waits for its outcome before it answers that it is under way, in milliseconds",
    read: readWholeNumber(settleWaitBoundsMs.least, settleWaitBoundsMs.most),
    unset: `${settleWaitDefaultsMs[1]} in protocol version 1, ${settleWaitDefaultsMs[2]} in version 2`,
    example: `${settleWaitDefaultsMs[2]}`,
    usedBy: ["serve", "up"],
  },
  DRAIN_DELAY_MS: {
    summary:
      "how long after SIGTERM new requests are still taken, in milliseconds: until balancers have seen that `/readyz` says no",
    read: readWholeNumber(0, 300_000),
    default: "3000",
    example: "10000",
    usedBy: ["serve"],
  },
  SHUTDOWN_TIMEOUT_MS: {
    summary:
      "when the process ends at the latest after SIGTERM, in milliseconds; settles under way may finish until shortly before",
    read: readWholeNumber(1_000, 900_000),
    default: "30000",
    example: "60000",
    usedBy: ["serve"],
  },
  ANONYMOUS_VERIFY: {
    summary: "`true` allows verify without an API key",
    read: readSwitch,
    default: "false",
    example: "false",
    usedBy: ["serve"],
  },
  API_DOCS: {
    summary: "`true` shows a page that describes the API at `/docs`; `/openapi.json` is served either way",
    read: readSwitch,
    default: "false",
    example: "false",
    usedBy: ["serve"],
  },
  DISCOVERY: {
    summary:
      "`true` keeps what each organization was paid for, and shows it to that organization at `/v1/discovery/resources` and `/v1/discovery/search`",
    read: readSwitch,
    default: "false",
    example: "true",
    usedBy: ["serve"],
  },
  LOG_LEVEL: {
    summary: `how much is logged: ${logLevels.join(", ")}; JSON lines on stderr`,
    read: readOneOf(logLevels),
    default: "info",
    example: "debug",
    usedBy: ["serve", "up"],
  },
  X402_KIT_URL: {
    summary: "where `x402-kit up` listens",
    read: readFacilitatorUrl,
    default: "http://127.0.0.1:4402",
    example: "http://127.0.0.1:4402",
    usedBy: ["running up"],
  },
  X402_API_KEY: {
    summary: "API key of an organization that may verify and settle",
    read: readApiKey,
    unset: "the published key of `up`",
    example: "x4k_0123456789abcdef_…",
    secret: true,
    usedBy: ["conformance", "channels"],
  },
  PAYER_PRIVATE_KEY: {
    summary:
      "private key of an account that pays: 0.01 USDC for each scenario that settles, or what `buy --live` buys",
    read: readPrivateKey,
    unset: "needed by `buy --live`, and by scenarios that settle, unless the facilitator is that of `up`",
    example: keyExample,
    secret: true,
    usedBy: ["buy", "conformance"],
  },
} as const satisfies Readonly<Record<string, Variable>>;

export type VariableName = keyof typeof variables;

/** A variable in the table, or the RPC variable of an added network. */
export type AnyVariableName = VariableName | RpcVariable;

export type VariableValue<N extends AnyVariableName> = N extends VariableName
  ? ReturnType<(typeof variables)[N]["read"]>
  : readonly [string, ...string[]];

export const variableNames = Object.keys(variables) as readonly VariableName[];

/** Returns all variable names, including those of added networks. */
export function variableNamesWith(known: NetworkRegistry): readonly AnyVariableName[] {
  return [...new Set<AnyVariableName>([...variableNames, ...known.names.map(rpcVariableOf)])];
}

/** Returns the names of the variables that some commands read. */
export function variablesOf(...users: readonly VariableUser[]): readonly VariableName[] {
  return variableNames.filter((name) => users.some((user) => describeVariable(name).usedBy.includes(user)));
}

export function describeVariable(name: AnyVariableName): Variable {
  const table: Readonly<Record<string, Variable>> = variables;
  return (
    table[name] ??
    rpcUrls(
      name
        .replace(/_RPC_URL$/, "")
        .toLowerCase()
        .replaceAll("_", "-"),
    )
  );
}

/** Returns the effect of an unset variable: its default, or a description. */
export function describeUnset(name: VariableName): string {
  const { default: value, unset = "" } = describeVariable(name);
  return value ?? unset;
}

/** The variables that have a default. */
export type VariablesWithDefault = {
  [N in VariableName]: (typeof variables)[N] extends { default: string } ? N : never;
}[VariableName];

/** A variable for the RPC URLs of a network, built in or added. */
export type RpcVariable = `${string}_RPC_URL`;

/** Returns the variable for a network's RPC URLs: BASE_SEPOLIA_RPC_URL for `base-sepolia`. */
export function rpcVariableOf(network: NetworkName): RpcVariable {
  return `${network.toUpperCase().replaceAll("-", "_")}_RPC_URL`;
}

/** The variables for the facilitator contract of each tier. */
export const contractVariables = {
  mainnet: "FACILITATOR_CONTRACT_MAINNET",
  testnet: "FACILITATOR_CONTRACT_TESTNET",
} as const satisfies Readonly<Record<NetworkTier, VariableName>>;
