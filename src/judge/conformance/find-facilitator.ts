import { randomBytes, randomUUID } from "node:crypto";
import { privateKeyToAddress } from "viem/accounts";
import { z } from "zod";
import { readHeadTime } from "../../chain/rpc/calls.ts";
import { usualAmount } from "../../fixtures/cases/payment-spec.ts";
import { isBegun } from "../../fixtures/engine/answer.ts";
import {
  defaultContracts,
  type FixtureNetwork,
  type ScenarioEnvironment,
} from "../../fixtures/engine/scenario-environment.ts";
import { askTime } from "../../harness/control/ask-chain.ts";
import { askHarness, type HarnessDescription } from "../../harness/control/description.ts";
import { askNextApproval, askNextTransaction } from "../../methods/on-chain/payer-state.ts";
import { harnessAccounts } from "../../payer/accounts.ts";
import { localTerms, localTokens } from "../../payer/local-chains.ts";
import { testKeys } from "../../payer/test-keys.ts";
import type { TestPayerName } from "../../payer/test-payers.ts";
import { type Dialect, dialects } from "../../protocol/catalogue.ts";
import { type GasSponsoring, gasSponsorings } from "../../protocol/checks.ts";
import { type Address, type Hex, sameAddress } from "../../protocol/hex.ts";
import {
  type Asset,
  builtInNetworks,
  createNetworkRegistry,
  type NetworkName,
  type NetworkRegistry,
} from "../../protocol/networks.ts";
import { address } from "../../protocol/primitives.ts";
import type { X402Version } from "../../protocol/requests.ts";
import { type PayToPolicy, payToPolicies } from "../../protocol/signed-payment.ts";
import { type Strictness, strictnesses } from "../../protocol/strictness.ts";
import { formatUnits } from "../../protocol/token-units.ts";
import { KitError } from "../../util/errors.ts";
import { type Comparison, compareContract, compareExactly, hideSecrets } from "./compare.ts";
import { findTestPayers, findUnfitPayers, type UnfitPayers } from "./find-test-payers.ts";
import { type MovedMoney, watchMoney } from "./moved-money.ts";
import { type Access, type Auth, sendRequest } from "./send-request.ts";

export type FacilitatorOptions = {
  /** Without `/v1`. */
  baseUrl: string;
  /** By default the published key if the facilitator is that of `up` or `mock`, otherwise none. */
  apiKey?: string | undefined;
  /** How the key is sent; by default bare if there is a key. */
  auth?: Auth | undefined;
  /** The header for the key; `Authorization` by default. */
  authHeader?: string | undefined;
  /** The network to pay on; by default the first that the facilitator lists. */
  network?: NetworkName | undefined;
  /** The known networks; the built-in ones by default. Networks of a running harness are added. */
  knownNetworks?: NetworkRegistry | undefined;
  /** The recipient of payments: a facilitator contract, or the merchant's own address. */
  payTo?: Address | undefined;
  /** The key of an account with tokens on the network; it pays in scenarios that settle. */
  payerKey?: Hex | undefined;
  /** An RPC endpoint of the network's chain; that of a running harness by default. */
  rpcUrl?: string | undefined;
};

/** A facilitator, with everything that scenarios need to know about it. */
export type FoundFacilitator = {
  baseUrl: string;
  access: Access;
  environment: ScenarioEnvironment;
  /** True if it is a facilitator of this kit, with the published keys and the test payers. */
  isKit: boolean;
  /** Why no account can pay; undefined if one can. */
  lacksFunds: string | undefined;
  /** The test payers that exist on the chain, if it could be queried. */
  testPayers: ReadonlySet<TestPayerName>;
  /** Reads transfers from the chain, if an RPC URL is known. */
  money: MovedMoney | undefined;
  /** True if the token has a blacklist; on a fork it may not. */
  hasBlacklist: boolean;
  /** The test payers on a local chain with an unexpected balance, with that balance. */
  unfitPayers: UnfitPayers;
  /** The protocol versions that it lists for the network. */
  versions: ReadonlySet<X402Version>;
  /** The submitter of "upto" payments that it lists for the network; undefined if it lists none. */
  uptoSubmitter: Address | undefined;
  /** Scheme "batch-settlement" with the signer of claims and refunds for shops; undefined if it is not listed. */
  channels: { authorizer: Address | undefined } | undefined;
  /** Shows neither the API key nor the payer's key. */
  compare: Comparison;
};

/** Additional members of other facilitators are ignored. */
const supportedSchema = z.object({
  kinds: z.array(
    z.object({
      x402Version: z.number(),
      scheme: z.string(),
      network: z.string(),
      extra: z
        .object({
          payTo: z.enum(payToPolicies).optional().catch(undefined),
          strictness: z.enum(strictnesses).optional().catch(undefined),
          reasons: z.enum(dialects).optional().catch(undefined),
          facilitatorAddress: address.optional().catch(undefined),
          receiverAuthorizer: address.optional().catch(undefined),
        })
        .optional()
        .catch(undefined),
    }),
  ),
  extensions: z.array(z.string()).optional().catch(undefined),
  signers: z.record(z.string(), z.array(z.string())).optional().catch(undefined),
});

/** Local chains mine a block for each transaction, and one every second without any. */
const localBlockTimeMs = 1_000;

/** A facilitator answers `/supported` from memory. */
const answersWithinMs = 10_000;

/**
 * Asks a facilitator what it supports.
 *
 * @throws {KitError} if nothing answers, the response is not a facilitator's, or payments cannot be made there
 */
export async function findFacilitator(options: FacilitatorOptions): Promise<FoundFacilitator> {
  const { baseUrl, payerKey } = options;
  const supported = await readSupported(baseUrl);
  const { listed, uptos, prefix, isPublished } = supported;
  const isKit = isPublished && (options.apiKey ?? testKeys.local.apiKey) === testKeys.local.apiKey;
  const apiKey = options.apiKey ?? (isKit ? testKeys.local.apiKey : undefined);
  const { auth = apiKey === undefined ? "none" : "bare", authHeader = "authorization" } = options;
  const harness = isKit ? await askHarness(baseUrl) : undefined;
  const known = addRunning(options.knownNetworks ?? builtInNetworks, harness);

  const kinds = listed.flatMap(({ network, x402Version }) => {
    const found = known.find(network, x402Version);
    return found === undefined ? [] : [{ name: found.name, x402Version }];
  });
  const names = [...new Set(kinds.map(({ name }) => name))];
  const name = options.network ?? names[0];
  if (name === undefined || !names.includes(name)) {
    throw new KitError(
      `The facilitator at ${baseUrl} lists no payments by scheme "exact" on ${name ?? "a known network"}`,
      {
        hints: [
          `GET ${baseUrl}${prefix}/supported lists ${names.length === 0 ? "none that is known" : names.join(", ")}`,
        ],
      },
    );
  }
  const found = { ...supported, isKit, harness, known };
  const networks = names.map((one) => describe(one, options, found));
  const [first, ...others] = networks;
  const network = networks.find((one) => one.name === name);
  if (first === undefined || network === undefined) throw new Error(`${name} is missing`);

  const running = harness?.networks[name];
  const rpcUrl = options.rpcUrl ?? running?.rpcUrl;
  const money = rpcUrl === undefined ? undefined : await watchMoney(rpcUrl, network);
  const [asset] = network.assets;
  const testPayersThere =
    isKit || money === undefined ? new Set<TestPayerName>() : await findTestPayers(money.ask, asset);
  const own = payerKey && accountOf(payerKey);
  const funded = own ?? (testPayersThere.has("funded") ? undefined : accountOf(undefined));
  const lacksFunds =
    isKit || (own === undefined && funded === undefined)
      ? undefined
      : await whyNoFunds(own?.address, { money, asset });
  return {
    baseUrl,
    access: { prefix, auth, authHeader: authHeader.toLowerCase() },
    isKit,
    lacksFunds,
    testPayers: testPayersThere,
    money,
    hasBlacklist: running?.fork?.hasBlacklist ?? true,
    unfitPayers: running && money ? await findUnfitPayers(money, asset) : new Map(),
    channels: supported.channels.find((kind) => known.find(kind.network, 2)?.name === name),
    uptoSubmitter: uptos.find((kind) => known.find(kind.network, 2)?.name === name)?.submitter,
    versions: new Set(kinds.filter((kind) => kind.name === name).map(({ x402Version }) => x402Version)),
    compare: hideSecrets(
      isKit ? compareExactly : compareContract,
      [apiKey, payerKey].filter((secret) => secret !== undefined),
    ),
    environment: {
      networks: [first, ...others],
      network,
      keys: isKit
        ? testKeys
        : { ...testKeys, local: { apiKey: apiKey ?? "none", organizationId: testKeys.local.organizationId } },
      ...(!isKit && { payers: { ...(funded && { funded }), empty: accountOf(undefined) } }),
      now: () => (money === undefined ? clockOf(baseUrl, name, isKit) : readTime(money.ask, name)),
      ...(money !== undefined && {
        nextApproval: (payer: Address) => askNextApproval(money.ask, { asset: asset.address, payer }),
        nextTransaction: (payer: Address) => askNextTransaction(money.ask, payer),
      }),
      run: randomUUID(),
    },
  };
}

/** The time of a chain, in Unix seconds. */
function readTime(ask: MovedMoney["ask"], name: string): Promise<bigint> {
  const request = async (...call: Parameters<MovedMoney["ask"]>) => (await ask(...call)).result;
  return readHeadTime({ request }, name);
}

/** The time of a mock server, which may have its own clock; otherwise this machine's time. */
async function clockOf(baseUrl: string, name: NetworkName, isKit: boolean): Promise<bigint> {
  const own = isKit ? await askTime(baseUrl, name) : undefined;
  return own ?? BigInt(Math.floor(Date.now() / 1_000));
}

/** Why no scenario can pay; undefined if the payer has enough money, or its balance is unknown. */
async function whyNoFunds(
  payer: Address | undefined,
  { money, asset }: { money: MovedMoney | undefined; asset: Asset },
): Promise<string | undefined> {
  if (payer === undefined) return "set PAYER_PRIVATE_KEY";
  const balance = await money?.balanceOf(payer);
  if (balance === undefined || balance >= usualAmount) return undefined;
  return `that of PAYER_PRIVATE_KEY, ${payer}, holds ${formatUnits(balance, asset.decimals)} USDC`;
}

/** Adds the networks that a harness describes, so that other processes need no network file. */
function addRunning(known: NetworkRegistry, harness: HarnessDescription | undefined): NetworkRegistry {
  const added = Object.entries(harness?.networks ?? {}).flatMap(([name, running]) => {
    const { chainId, caip2, tier, asset, nativeCoin = "ETH" } = running;
    if (tier === undefined || known.named(name) !== undefined) return [];
    return [{ name, chainId, caip2, tier, usdc: asset, nativeCoin, blockTimeMs: localBlockTimeMs }];
  });
  return added.length === 0 ? known : createNetworkRegistry([...known.all, ...added]);
}

type SupportedAnswer = {
  /** The listed kinds with scheme "exact", each with the network's name as in the response. */
  listed: { network: string; x402Version: X402Version }[];
  /** The listed kinds with scheme "upto" that name a submitter. */
  uptos: { network: string; submitter: Address }[];
  /** The listed kinds with scheme "batch-settlement", with the signer of claims and refunds for shops. */
  channels: { network: string; authorizer: Address | undefined }[];
  prefix: Access["prefix"];
  /** True if it uses the published operator key, as `up` and `mock` do. */
  isPublished: boolean;
  /** Its policy for recipients, if it is a facilitator of this kit. */
  policy: PayToPolicy;
  strictness: Strictness;
  reasons: Dialect;
  gasSponsoring: readonly GasSponsoring[];
};

/** Looks below `/v1` first, then at the root. */
async function readSupported(baseUrl: string): Promise<SupportedAnswer> {
  const came: string[] = [];
  for (const prefix of ["/v1", ""] as const) {
    const answer = await ask(baseUrl, `${prefix}/supported`);
    const read = supportedSchema.safeParse(answer.kind === "json" ? answer.body : undefined);
    if (answer.kind === "json" && answer.status === 200 && read.success) {
      const { kinds, extensions = [], signers = {} } = read.data;
      const published = harnessAccounts.operator.address;
      return {
        prefix,
        isPublished: Object.values(signers)
          .flat()
          .some((signer) => sameAddress(signer, published)),
        gasSponsoring: gasSponsorings.filter((name) => extensions.includes(name)),
        policy: kinds.find(({ extra }) => extra?.payTo !== undefined)?.extra?.payTo ?? "contract",
        strictness: kinds.find(({ extra }) => extra?.strictness !== undefined)?.extra?.strictness ?? "spec",
        reasons: kinds.find(({ extra }) => extra?.reasons !== undefined)?.extra?.reasons ?? "spec",
        uptos: kinds.flatMap(({ scheme, network, extra }) =>
          scheme === "upto" && extra?.facilitatorAddress !== undefined
            ? [{ network, submitter: extra.facilitatorAddress }]
            : [],
        ),
        channels: kinds.flatMap(({ scheme, network, extra }) =>
          scheme === "batch-settlement" ? [{ network, authorizer: extra?.receiverAuthorizer }] : [],
        ),
        listed: kinds.flatMap(({ scheme, x402Version, network }) =>
          scheme === "exact" && (x402Version === 1 || x402Version === 2) ? [{ network, x402Version }] : [],
        ),
      };
    }
    const what = isBegun(answer)
      ? `${answer.kind === "json" ? "JSON" : "something else than JSON"} with status ${answer.status}`
      : "no answer";
    came.push(`GET ${baseUrl}${prefix}/supported gave ${what}`);
  }
  throw new KitError(`What answers at ${baseUrl} is not an x402 facilitator`, {
    hints: [
      `${came.join(", and ")}; a facilitator lists its kinds of payment there.`,
      "Give the address that /v1/verify and /v1/settle, or /verify and /settle, are behind.",
    ],
  });
}

async function ask(baseUrl: string, path: string) {
  try {
    return await sendRequest(baseUrl, { method: "GET", path, headers: {} }, answersWithinMs);
  } catch (error) {
    throw new KitError(`Nothing answers at ${baseUrl}`, {
      cause: error instanceof KitError ? error.cause : error,
      hints: ["Give the address of a facilitator that runs: --url URL"],
    });
  }
}

type Found = SupportedAnswer & {
  isKit: boolean;
  harness: HarnessDescription | undefined;
  known: NetworkRegistry;
};

function describe(
  name: NetworkName,
  { payTo }: FacilitatorOptions,
  { isKit, harness, known: all, policy, strictness, reasons, gasSponsoring }: Found,
): FixtureNetwork {
  const network = all.named(name);
  if (network === undefined) throw new Error(`${name} is no network`);
  const running = harness?.networks[name];
  const known = running?.facilitatorContract ?? (isKit ? defaultContracts[network.tier] : undefined);
  const facilitatorContract = payTo ?? known;
  if (facilitatorContract === undefined) {
    throw new KitError("Where payments must go is not known", {
      hints: [
        "Give the address that this facilitator wants as payTo: --pay-to ADDRESS",
        "Of a facilitator of this kit, it is the facilitator contract; of others, usually any wallet of yours.",
      ],
    });
  }
  // A mock has every local token; a harness lists its own.
  const tokens = isKit && harness === undefined ? localTokens : (running?.tokens ?? {});
  return {
    ...network,
    facilitatorContract,
    assets: [running?.asset ?? network.usdc, ...Object.values(tokens)],
    gasSponsoring,
    strictness,
    reasons,
    // For other facilitators, payments simply go to `payTo`.
    ...(isKit && { payTo: policy, walletFactories: localTerms.walletFactories }),
  };
}

/** The account of a key; by default of a new random key. */
function accountOf(privateKey: Hex = `0x${randomBytes(32).toString("hex")}`) {
  try {
    return { address: privateKeyToAddress(privateKey), privateKey };
  } catch {
    // No `cause`, because it may quote the key.
    throw new KitError(
      "PAYER_PRIVATE_KEY is no private key: it is not below the order of secp256k1, or zero",
    );
  }
}
