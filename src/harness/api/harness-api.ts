import type { TransactionReceipt } from "viem";
import type { NetworkData } from "../../config/network-file.ts";
import type { OrganizationData } from "../../config/organization-file.ts";
import type { LogLevel } from "../../config/values.ts";
import type { mockUsdcAbi } from "../../contracts/mockUsdc.ts";
import type { x402FacilitatorAbi } from "../../contracts/x402Facilitator.ts";
import type { WrittenRequest } from "../../methods/build-request.ts";
import type { PaymentSummary } from "../../observe/timeline/payment-view.ts";
import type { LocalTokenName, LocalTokens } from "../../payer/local-chains.ts";
import type { Amount } from "../../payer/terms.ts";
import type { ProblemDetails, SettleAnswer, VerifyAnswer } from "../../protocol/answers.ts";
import type { Dialect } from "../../protocol/catalogue.ts";
import type { Address, Hex } from "../../protocol/hex.ts";
import type { AddedBy, Asset, BuiltInNetworkName, NetworkName } from "../../protocol/networks.ts";
import type { PayToPolicy } from "../../protocol/signed-payment.ts";
import type { Payer, PaymentSpec } from "../control/pay.ts";
import type { Faults } from "../faults/faults.ts";
import type { ForkOption } from "../fork/fork-options.ts";
import type { PaymentJournal } from "../journal/journal.ts";
import type { Journal } from "../journal/journal-reader.ts";
import type { BuyerOptions, ChallengeSpec, HarnessBuyer, ShopConfig, ShopOptions } from "./buyer.ts";
import type { HarnessClient } from "./viem-client.ts";
import type { BrowserWallet, WalletOptions } from "./wallet.ts";

/**
 * A local chain of a harness. Amounts are strings in whole tokens (`"0.01"`) or bigints in the smallest unit; times are unix
 * seconds.
 */
export type HarnessNetwork<N extends NetworkName = NetworkName> = {
  readonly name: N;
  readonly chainId: number;
  /** The network's x402 v2 name. */
  readonly caip2: `eip155:${number}`;
  /** The URL of the node, for wallets and anything else a test does to the chain. */
  readonly rpcUrl: string;
  /** A viem client for this chain with public, wallet and test actions. */
  readonly client: HarnessClient;
  /** The `payTo` of payments, unless the harness option `payTo` allows other addresses. */
  readonly facilitatorContract: { readonly address: Address; readonly abi: typeof x402FacilitatorAbi };
  /** The `payTo` of the organization's shops: the facilitator contract, or its recipient if that is allowed. */
  readonly payTo: Address;
  /** The token. It behaves like USDC, but any account may mint it. On a fork it is the real USDC, which nobody can mint. */
  readonly asset: Asset & { readonly abi: typeof mockUsdcAbi };
  /** Only on a fork: the block it continues from, the source of older state, and whether its token has a blacklist. */
  readonly fork?: {
    readonly block: number;
    readonly from: "remote" | "recording";
    readonly hasBlacklist: boolean;
  };
  /**
   * Further accepted tokens, paid by Permit2: an ERC-20 without permits, one with permits (EIP-2612), one that behaves like
   * USDT, and one that charges a fee on transfers. The test payers own some of each. Empty on a fork.
   */
  readonly tokens: LocalTokens;
  /** Gives an account more of the asset, or of one of the tokens. Resolves when mined. */
  fund(account: Address, amount: Amount, asset?: LocalTokenName): Promise<void>;
  /**
   * Approves Permit2 for an account's tokens, like its own `approve` but without gas. Unlimited by default; 0 revokes the
   * approval. The test payers have approved already, except `unapproved`, `approvedShort` and `sponsored`. Resolves when
   * mined.
   */
  approvePermit2(account: Address, amount?: Amount, asset?: LocalTokenName): Promise<void>;
  /** Returns an account's balance of the asset, or of one of the tokens, in the smallest unit. */
  balanceOf(account: Address, asset?: LocalTokenName): Promise<bigint>;
  /** Mines blocks immediately; one by default. */
  mine(blocks?: number): Promise<void>;
  /**
   * Moves the chain's time forward and returns the new time. Time continues from there, and the service judges
   * authorizations by it.
   */
  advanceTime(seconds: number): Promise<bigint>;
  /**
   * Moves the chain's time forward to unix seconds or a date, and returns the new time.
   *
   * @throws {KitError} if the chain has already reached that time
   */
  advanceTimeTo(time: number | bigint | Date): Promise<bigint>;
  /** Returns the timestamp of the newest block. */
  now(): Promise<bigint>;
};

/**
 * An answer of the service. Accepted and refused payments both have status 200. Any other status means that no decision
 * was made, and comes with problem details (RFC 9457), which also say `isValid: false` or `success: false`.
 */
export type ServiceAnswer<Verdict> = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Verdict | ProblemDetails;
};

/** The body of a verify or settle call, unchecked. */
export type PaymentRequestBody = Record<string, unknown>;

/** The body of a verify or settle call, signed by the harness. */
export type SignedRequest = WrittenRequest;

/** The outcome of a payment. */
export type Payment = {
  /** The body that was posted to verify. */
  readonly request: SignedRequest;
  /** The body that was posted to settle: the same, but with a smaller amount if less than the maximum is settled (“upto”). */
  readonly settleRequest: SignedRequest;
  readonly verify: ServiceAnswer<VerifyAnswer>;
  readonly settle: ServiceAnswer<SettleAnswer>;
  /** The receipt of the transaction that settle named; null if it named none, or the chain does not have it. */
  readonly receipt: TransactionReceipt | null;
  /** The id at `GET /v1/settlements/{id}`: keccak256 of (chainId, asset or Permit2, payer, nonce). */
  readonly settlementId: Hex;
};

/** A caller of the harness's facilitator with its own API key. */
export type HarnessCaller<N extends NetworkName = BuiltInNetworkName> = Pick<
  Harness<N>,
  "verify" | "settle" | "pay" | "shopConfig"
> & { readonly apiKey: string };

export type SettleOptions = {
  /** Sent as `Idempotency-Key`. For 24 h, the same body with the same key gets the same success again. */
  idempotencyKey?: string;
};

/** A saved state of a harness. */
export type HarnessSnapshot = {
  /** @throws {KitError} after a reset, or after an older snapshot was restored */
  restore(): Promise<void>;
};

/** Local chains with a facilitator. Disposing of it leaves nothing behind. */
export type Harness<N extends NetworkName = BuiltInNetworkName> = AsyncDisposable & {
  readonly facilitator: {
    /** The URL for clients; ends in `/v1`. */
    readonly url: string;
  };
  /** The organization that is paid, with its API key. */
  readonly organization: { readonly id: string; readonly apiKey: string; readonly recipient: Address };
  /** The URL of the recording proxy and the shop behind it; undefined without the option `shop`. */
  readonly shop: { readonly url: string; readonly target: string } | undefined;
  /** The chains, by network. */
  readonly networks: { readonly [K in N]: HarnessNetwork<K> };
  /**
   * Signs a payment without sending it. Pass the result to a server, or change it and pass it to {@link verify}.
   *
   * @example
   * const request = await harness.sign({ network: "base", payer: "smartWallet", amount: "0.0025" });
   */
  sign(spec: PaymentSpec<N>): Promise<SignedRequest>;
  /**
   * Signs a payment for a shop's URL or 402 without sending it.
   *
   * @throws {KitError} if the shop offers nothing that can be paid on this harness
   *
   * @example
   * const request = await harness.sign({ challenge: "http://127.0.0.1:3000/report" });
   */
  sign(shop: ChallengeSpec): Promise<PaymentRequestBody>;
  /** Posts a body to `/v1/verify` as the organization. */
  verify(request: PaymentRequestBody): Promise<ServiceAnswer<VerifyAnswer>>;
  /** Posts a body to `/v1/settle` as the organization. */
  settle(request: PaymentRequestBody, options?: SettleOptions): Promise<ServiceAnswer<SettleAnswer>>;
  /**
   * Signs a payment, verifies it, and settles it regardless of the verdict, like a server that ignores it.
   *
   * @example
   * const payment = await harness.pay({ network: "base", payer: "empty" });
   * expect(payment.verify.body).toMatchObject({ isValid: false, invalidReason: "insufficient_funds" });
   * expect(payment.receipt).toBeNull();
   */
  pay(spec: PaymentSpec<N> & SettleOptions): Promise<Payment>;
  /**
   * Returns a caller for another organization: one of the option `organizations` by its id, or any by an API key, such as
   * those of `x402-facilitator-kit/test-keys`.
   *
   * @throws {KitError} if there is no organization with that id
   *
   * @example
   * const { settle } = await harness.as("acme").pay({ network: "base", amount: "0.01" });
   */
  as(idOrApiKey: string): HarnessCaller<N>;
  /**
   * Injects failures: RPC answers that are lost, late or wrong, and chains that hold, drop and reorganize.
   *
   * @example
   * await harness.faults.on("base", { method: "eth_sendRawTransaction*", nth: 2 }).answerLost();
   */
  readonly faults: Faults<N>;
  /**
   * The history of each payment: its requests and checks, JSON-RPC calls and transactions.
   *
   * @example
   * const { settlementId } = await harness.pay({ network: "base" });
   * console.log(await harness.journal.describe(settlementId));
   */
  readonly journal: Journal;
  /**
   * Returns the outcome of each payment and of every other request, newest first. This is the list of the studio and of
   * `GET /payments`; see docs/guides/payments.md.
   *
   * @throws {KitError} if no journal is kept
   *
   * @example
   * const [newest] = await harness.payments();
   * expect(newest).toMatchObject({ payerName: "funded", settle: { outcome: "settled" } });
   */
  payments(): Promise<readonly PaymentSummary[]>;
  /**
   * Waits for the next new payment, such as one made by a page or a buyer, and returns what the service has done about it
   * so far.
   *
   * @throws {KitError} if none arrives in time (10 s by default), or no journal is kept
   */
  nextPayment(options?: { timeoutMs?: number }): Promise<PaymentJournal>;
  /**
   * Returns a buyer who pays shops on these chains.
   *
   * @param payer a test payer by name (some of them cannot pay), a private key, or a viem account
   * @throws {KitError} if the payer is none of these
   *
   * @example
   * const response = await harness.buyer("funded").fetch("http://127.0.0.1:3000/report");
   */
  buyer(payer: Payer, options?: BuyerOptions): HarnessBuyer;
  /**
   * Returns a test payer's wallet for a page in a test browser: an EIP-1193 provider, announced by EIP-6963.
   *
   * @throws {KitError} if there is no such payer
   * @throws {ConfigurationError} if the network is not one of the harness's
   *
   * @example
   * const wallet = harness.wallet({ payer: "funded", network: "base" });
   * await page.exposeFunction(wallet.binding, wallet.request);
   * await page.addInitScript(wallet.script);
   */
  wallet(options?: WalletOptions<N>): BrowserWallet;
  /**
   * Returns the configuration for a shop that uses the public server packages and is paid on this harness.
   *
   * @param amount the price, as a string in whole tokens or a bigint in the smallest unit; for scheme “upto”, the maximum
   * @param options the payment method; by default scheme “exact” in USDC by EIP-3009, or by Permit2 for other tokens
   *
   * @example
   * const { facilitator, accepts } = harness.shopConfig("base", "0.01");
   * const server = new x402ResourceServer(new HTTPFacilitatorClient(facilitator)).register("eip155:*", new ExactEvmScheme());
   * app.use(paymentMiddleware({ "GET /report": { accepts } }, server));
   */
  shopConfig(network: N, amount: Amount, options?: ShopOptions): ShopConfig;
  /**
   * Saves the state of all chains and the ledger; `restore()` restores it any number of times. Take it while no payment is
   * in flight. Like {@link reset}, restoring removes faults and clears the journal. It also invalidates later snapshots; a
   * reset invalidates all of them.
   *
   * @example
   * const paid = await harness.snapshot();
   * await harness.pay({ network: "base" });
   * await paid.restore();
   */
  snapshot(): Promise<HarnessSnapshot>;
  /**
   * Resets everything to the start: accounts, contracts, blocks, pool, mining, time and fees of every chain, and the
   * service with its ledger and journal. Faults are removed. Requests in flight are answered with 503.
   */
  reset(): Promise<void>;
  /** Stops everything that was started. A harness that was only connected to keeps running. */
  close(): Promise<void>;
};

/** The token of a network. Omitted fields default to those of the network's USDC. */
export type AssetOptions = { address: Address; name?: string; version?: string; decimals?: number };

/** The options of a harness; all have defaults. A network besides the five built-in ones needs a network file. */
export type HarnessOptions<N extends NetworkName = BuiltInNetworkName> = HarnessSettings<N> &
  NamesNetworks<N>;

/** The network file, required for networks besides the five built-in ones. */
export type NamesNetworks<N extends NetworkName> = AddedBy<
  N,
  { networkFile: NonNullable<HarnessSettings["networkFile"]> }
>;

/** Makes unknown network names a compile error, unless there is a network file. */
export type CheckedNames<N extends NetworkName, File> = [File] extends [undefined]
  ? AddedBy<N, { networks?: readonly (N extends BuiltInNetworkName ? N : UnknownNetwork)[] }>
  : unknown;

/** Makes the compiler's error message list the networks. */
type UnknownNetwork = { "is not a network; there are": BuiltInNetworkName };

/** {@link HarnessOptions} without compile-time checks of network names. */
export type HarnessSettings<N extends NetworkName = NetworkName> = {
  /** The chains to start; all five built-in networks by default. Each needs about 40 MB of memory. */
  networks?: readonly N[];
  /**
   * Further networks: the path of a network file, or its contents. Only those named in `networks` are started. See
   * docs/guides/networks.md.
   *
   * @example
   * await createHarness({ networkFile: "networks.json", networks: ["base", "my-chain"] })
   */
  networkFile?: string | NetworkData | readonly NetworkData[];
  /**
   * The addresses of the facilitator contract: `mainnet` for base, optimism and polygon, `testnet` for the two testnets.
   * With the addresses of your deployment, clients sign exactly what they sign in production.
   */
  contracts?: { mainnet?: Address; testnet?: Address };
  /** Tokens other than USDC, or at other addresses; see {@link AssetOptions}. */
  assets?: Partial<Record<N, AssetOptions>>;
  /** The organization's recipient address on every network; a published account by default. */
  recipient?: Address;
  /**
   * The allowed `payTo` addresses, like `PAY_TO` of `serve`; `contract` by default.
   * - `contract`: only the facilitator contract, which forwards payments to the recipient.
   * - `recipients`: also the recipient of the organization that settles the payment, directly.
   * - `any`: also any other address, directly, as with public facilitators.
   *
   * With `recipients` and `any`, {@link Harness.pay} and {@link Harness.shopConfig} pay the recipient directly.
   *
   * @example
   * await createHarness({ networks: ["base"], payTo: "any" })
   */
  payTo?: PayToPolicy;
  /**
   * The names used in `invalidReason` and `errorReason`: those of the specification (`spec`, the default) or of the public
   * reference facilitator (`reference`). Like `REASONS` of `serve`.
   */
  reasons?: Dialect;
  /**
   * Further organizations with their own recipients and limits. Each has an API key, which {@link Harness.as} uses.
   *
   * @example
   * organizations: [{ id: "acme", recipient: "0x…", networks: { base: { minimumAmount: 1_000_000n } } }]
   */
  organizations?: readonly OrganizationData[];
  /**
   * The sources of forked chains: a JSON-RPC URL of the network, or a recording, which needs no network access. The token is
   * then the network's real USDC, and all other contracts are there too. See docs/guides/harness.md.
   *
   * @example
   * fork: { base: "https://base.example", polygon: { recording: "test/polygon.fork.json.gz" } }
   */
  fork?: Partial<Record<N, ForkOption>>;
  /** The IP address that the facilitator listens on; loopback by default. */
  host?: string;
  /** Host names besides `localhost` that other processes may use for the harness, such as a container's name. */
  allowHosts?: readonly string[];
  /** The facilitator's port; any free one by default. */
  port?: number;
  /** The ports of nodes; free ones by default. */
  rpcPorts?: Partial<Record<N, number>>;
  /** How long a settle waits for its outcome, in milliseconds; the default of `serve` by default. */
  settleWaitMs?: number;
  /**
   * True (the default) if the service recovers payments whose authorization was submitted directly to the token, as in
   * production with `RECOVERER_PRIVATE_KEY`.
   */
  recovery?: boolean;
  /** True (the default) if {@link Harness.journal} is kept. Without it the service is slightly faster. */
  journal?: boolean;
  /** True if the facilitator also serves the studio at `/studio`; false by default. */
  studio?: boolean;
  /**
   * The address of a shop to put a recording proxy in front of, at {@link Harness.shop}. `payments()` and the studio then
   * also show the exchange between client and shop. See docs/guides/payments.md.
   *
   * @example
   * await createHarness({ networks: ["base"], shop: "http://127.0.0.1:3000" })
   */
  shop?: string;
  /** "fatal" by default, because tests provoke failures on purpose. */
  logLevel?: LogLevel;
  /**
   * Makes runs repeatable down to the block hashes: the same calls produce the same chains. Chain time then starts at
   * 2026-01-01T00:00:00Z, and moves only by one second per block and by `advanceTime`.
   */
  seed?: number;
  /** Path of the anvil binary; by default the one from the package `@foundry-rs/anvil`. */
  anvilBinary?: string;
  /** Aborts the start. */
  signal?: AbortSignal;
};
