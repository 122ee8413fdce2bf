import { type Address, sameAddress } from "../protocol/hex.ts";
import type { Asset, Network, NetworkName, NetworkTier } from "../protocol/networks.ts";
import { maxUint256 } from "../protocol/wire-values.ts";
import type { ConfigurationProblem } from "../util/errors.ts";
import type { NetworkAsset } from "./known-networks.ts";
import type { NetworkConfig } from "./serve-config.ts";
import { type ByNetwork, warnOfClearText } from "./values.ts";
import type { VariableReader } from "./variable-reader.ts";
import { contractVariables, rpcVariableOf } from "./variables.ts";

/** Reads the networks that have an RPC URL, with their settings. Incomplete if there are problems. */
export function readServedNetworks(
  reader: VariableReader,
  warnings: ConfigurationProblem[],
): readonly NetworkConfig[] {
  const contracts = readContractLists(reader);
  const assets = reader.read("ASSETS") ?? [];
  const confirmations = reader.read("CONFIRMATIONS");
  const successEndpoints = reader.read("SUCCESS_ENDPOINTS");
  const feeCaps = readFeeCaps(reader);
  const maxCosts: ByNetwork<bigint> = reader.read("MAX_TRANSACTION_COST") ?? {};
  const gasBudgets: ByNetwork<bigint | null> = reader.read("DAILY_GAS_BUDGET");
  const gasHorizonPayments = BigInt(reader.read("GAS_HORIZON_PAYMENTS"));
  const strictness = reader.read("STRICTNESS");
  const isBound = strictness === "spec" || reader.isSet("MAX_VALIDITY_SECONDS");
  const maxValiditySeconds = isBound ? BigInt(reader.read("MAX_VALIDITY_SECONDS")) : maxUint256;
  const allowZeroValue = reader.read("ALLOW_ZERO_VALUE");
  const payTo = reader.read("PAY_TO");
  if (strictness === "reference" && payTo !== "any") {
    reader.refuse("STRICTNESS", "is reference, which needs PAY_TO=any: public facilitators take any payTo");
  }
  const reasons = reader.read("REASONS");
  const gasSponsoring = reader.read("GAS_SPONSORING");
  const maxGifts: ByNetwork<bigint> = reader.read("MAX_GIFT") ?? {};
  const dailyGifts: ByNetwork<bigint> = reader.read("DAILY_GIFTS") ?? {};
  const walletFactories = reader.read("WALLET_FACTORIES");
  const builderCode = reader.read("BUILDER_CODE");

  const served = reader.networks.all.filter(({ name }) => reader.isSet(rpcVariableOf(name)));
  if (served.length === 0) {
    reader.refuse(
      "BASE_RPC_URL",
      "no network is served: give the RPC URL of one, by this or another *_RPC_URL",
    );
    requireAnyContract(reader);
  }
  requireContracts(reader, served);
  for (const { network, address } of assets) {
    if (!served.some(({ name }) => name === network)) {
      warnings.push({
        name: "ASSETS",
        problem: `names the token ${address} of ${network}, which is not served`,
      });
    }
  }

  return served.flatMap((network): NetworkConfig[] => {
    const { name, tier } = network;
    const rpcUrls = readRpcUrls(reader, network, warnings);
    const [facilitatorContract, ...formerContracts] = contracts[tier] ?? [];
    const allowed = allowAssets(reader, network, assets);
    if (rpcUrls === undefined || facilitatorContract === undefined) return [];
    const isToken = (contract: Address) => allowed.some(({ address }) => sameAddress(address, contract));
    if ([facilitatorContract, ...formerContracts].some(isToken)) {
      reader.refuse(contractVariables[tier], `is the address of a token of ${name}`);
    }
    return [
      {
        ...network,
        facilitatorContract,
        ...(formerContracts.length > 0 && { formerContracts }),
        payTo,
        rpcUrls,
        assets: allowed,
        confirmations: confirmations[name] ?? network.confirmations,
        successEndpoints,
        maxFeePerGas: feeCaps[name] ?? network.maxFeePerGas,
        maxTransactionCost: maxCosts[name],
        dailyGasBudget: gasBudgets[name] === undefined ? network.dailyGasBudget : gasBudgets[name],
        gasHorizonPayments,
        maxValiditySeconds,
        allowZeroValue,
        gasSponsoring,
        strictness,
        reasons,
        gifts: pairGifts(reader, name, maxGifts[name], dailyGifts[name]),
        walletFactories,
        builderCode,
      },
    ];
  });
}

/** Reads the gift limits of a network. One limit without the other is refused, as it would silently give nothing. */
function pairGifts(
  reader: VariableReader,
  name: NetworkName,
  each: bigint | undefined,
  daily: bigint | undefined,
): NetworkConfig["gifts"] {
  if (each !== undefined && daily !== undefined) return { each, daily };
  if (each === undefined && daily === undefined) return undefined;
  const [lacking, given] =
    each === undefined ? (["MAX_GIFT", "DAILY_GIFTS"] as const) : (["DAILY_GIFTS", "MAX_GIFT"] as const);
  reader.refuse(lacking, `is needed for ${name}, which ${given} names: without it nothing is given there`);
  return undefined;
}

/** Returns the address of each tier's offered facilitator contract, if configured. */
export function readContracts(reader: VariableReader): Partial<Record<NetworkTier, Address>> {
  const { mainnet, testnet } = readContractLists(reader);
  return { ...(mainnet && { mainnet: mainnet[0] }), ...(testnet && { testnet: testnet[0] }) };
}

/** Reads the facilitator contracts of each tier: the offered one first, then former ones. */
export function readContractLists(
  reader: VariableReader,
): Partial<Record<NetworkTier, readonly [Address, ...Address[]]>> {
  const mainnet = reader.read(contractVariables.mainnet);
  const testnet = reader.read(contractVariables.testnet);
  if (mainnet?.some((contract) => testnet?.some((other) => sameAddress(contract, other)))) {
    // The address of a payment must show if it moves real money.
    reader.refuse(
      contractVariables.testnet,
      "is the address of the mainnets; the test networks need another",
    );
  }
  return { ...(mainnet && { mainnet }), ...(testnet && { testnet }) };
}

/** Reads the RPC URLs of a network; undefined if it has none, or one of them is invalid. */
export function readRpcUrls(
  reader: VariableReader,
  { name }: Network,
  warnings: ConfigurationProblem[],
): readonly [string, ...string[]] | undefined {
  const variable = rpcVariableOf(name);
  const urls = reader.read(variable);
  const danger = "an attacker on the way could read it and answer for it";
  warnings.push(...warnOfClearText(variable, urls ?? [], danger));
  return urls;
}

/** Reads the configured maximum prices per gas, in wei, by network. */
export function readFeeCaps(reader: VariableReader): ByNetwork<bigint> {
  return reader.read("MAX_FEE_GWEI");
}

/** Requires at least one contract. Only a served network shows which one is needed. */
function requireAnyContract(reader: VariableReader): void {
  const { mainnet, testnet } = contractVariables;
  if (reader.isSet(mainnet) || reader.isSet(testnet)) return;
  reader.refuse(
    mainnet,
    `is needed for a mainnet, and ${testnet} for a test network; x402-kit deploy prints it`,
  );
}

function requireContracts(reader: VariableReader, served: readonly Network[]): void {
  for (const tier of ["mainnet", "testnet"] as const) {
    const names = served.filter((network) => network.tier === tier).map(({ name }) => name);
    if (names.length > 0 && !reader.isSet(contractVariables[tier])) {
      reader.refuse(contractVariables[tier], `is needed for ${names.join(", ")}; x402-kit deploy prints it`);
    }
  }
}

function allowAssets(
  reader: VariableReader,
  { name, usdc }: Network,
  configured: readonly NetworkAsset[],
): readonly Asset[] {
  const allowed = [usdc];
  for (const { network, ...asset } of configured) {
    if (network !== name) continue;
    const known = allowed.find(({ address }) => sameAddress(address, asset.address));
    if (known === undefined) allowed.push(asset);
    else if (known === usdc) reader.refuse("ASSETS", `names USDC of ${name}, which is allowed anyway`);
    else reader.refuse("ASSETS", `names ${asset.address} of ${name} twice`);
  }
  return allowed;
}
