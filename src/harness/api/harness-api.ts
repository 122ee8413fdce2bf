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

/** A local chain of a harness. Amounts are texts in whole tokens (`"0.01"`), or bigints in the smallest unit; times unix seconds. */
export type HarnessNetwork<N extends NetworkName = NetworkName> = {
  readonly name: N;
  readonly chainId: number;
  /** The network's x402 v2 name. */
  readonly caip2: `eip155:${number}`;
  /** The node itself: for wallets, and for whatever else a test does to the chain. */
  readonly rpcUrl: string;
  /** A viem client with public, wallet and test actions, whose `chain` is this one. */
  readonly client: HarnessClient;
  /** The `payTo` of payments, unless the option `payTo` of the harness allows other addresses. */
  readonly facilitatorContract: { readonly address: Address; readonly abi: typeof x402FacilitatorAbi };
  /** The `payTo` of the organization's shops: the facilitator contract, or its recipient if that is allowed. */
  readonly payTo: Address;
  /** The token: behaves as USDC, and any account may mint it. On a fork it is the real USDC, without that. */
  readonly asset: Asset & { readonly abi: typeof mockUsdcAbi };
  /** Only of a fork: the block that it goes on from, where the rest is read, and whether its token can blacklist. */
  readonly fork?: {
    readonly block: number;
    readonly from: "remote" | "recording";
    readonly hasBlacklist: boolean;
  };
  /**
   * The accepted assets besides, by Permit2: an ERC-20 without permits, one with (EIP-2612), one as USDT, one that keeps a fee of
   * each transfer. The test payers have some. None on a fork.
   */
  readonly tokens: LocalTokens;
  /** Gives an account more of the asset, or of one of the tokens. Resolves when that is mined. */
  fund(account: Address, amount: Amount, asset?: LocalTokenName): Promise<void>;
  /**
   * Has an account let Permit2 take its tokens, all of them by default, as its own `approve` would, but without gas; 0 withdraws
   * it. The test payers have done so, except `unapproved`, `approvedShort` and `sponsored`. Resolves when that is mined.
   */
  approvePermit2(account: Address, amount?: Amount, asset?: LocalTokenName): Promise<void>;
  /** How much of the asset, or of one of the tokens, an account has. */
  balanceOf(account: Address, asset?: LocalTokenName): Promise<bigint>;
  /** Mines blocks at once; one by default. */
  mine(blocks?: number): Promise<void>;
  /** Moves the chain's time forward, by which the service judges authorizations; time goes on from there. Gives the new time. */
  advanceTime(seconds: number): Promise<bigint>;
  /**
   * The same, up to a time: unix seconds, or a date.
   *
   * @throws {KitError} when the chain is there already
   */
  advanceTimeTo(time: number | bigint | Date): Promise<bigint>;
  /** The time of the newest block. */
  now(): Promise<bigint>;
};

/**
 * An answer of the service. A verdict, good or bad, has status 200. Any other status means that there is none, and
 * comes with problem details (RFC 9457), which also say `isValid: false` or `success: false`.
 */
export type ServiceAnswer<Verdict> = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Verdict | ProblemDetails;
};

/** The body of a verify or settle call, whatever it is. */
export type PaymentRequestBody = Record<string, unknown>;

/** The body of a verify or settle call that the harness has signed. */
export type SignedRequest = WrittenRequest;

/** The outcome of a payment. */
export type Payment = {
  /** The body that was posted to verify and to settle. */
  readonly request: SignedRequest;
  /** The body that was sent to settle: the same, but with a smaller amount if less than the maximum is settled (scheme “upto”). */
  readonly settleRequest: SignedRequest;
  readonly verify: ServiceAnswer<VerifyAnswer>;
  readonly settle: ServiceAnswer<SettleAnswer>;
  /** Of the transaction that settle named; null when it named none, or the chain does not have it. */
  readonly receipt: TransactionReceipt | null;
  /** keccak256 of (chainId, asset or Permit2, payer, nonce): its id at `GET /v1/settlements/{id}`. */
  readonly settlementId: Hex;
};

/** A caller with an API key of its own, at the facilitator of a harness. */
export type HarnessCaller<N extends NetworkName = BuiltInNetworkName> = Pick<
  Harness<N>,
  "verify" | "settle" | "pay" | "shopConfig"
> & { readonly apiKey: string };

export type SettleOptions = {
  /** Sent as `Idempotency-Key`: the same body with the same key gets its success again, for 24 h. */
  idempotencyKey?: string;
};

/** A moment of a harness. */
export type HarnessSnapshot = {
  /** @throws {KitError} after a reset, or after an earlier snapshot was restored */
  restore(): Promise<void>;
};

/** Local chains with a facilitator on them. Disposing of it leaves nothing behind. */
export type Harness<N extends NetworkName = BuiltInNetworkName> = AsyncDisposable & {
  readonly facilitator: {
    /** The URL for clients; ends in `/v1`. */
    readonly url: string;
  };
  /** Who is paid, and the API key that speaks for it. */
  readonly organization: { readonly id: string; readonly apiKey: string; readonly recipient: Address };
  /** The URL of the recording proxy and the shop behind it; undefined without the option `shop`. */
  readonly shop: { readonly url: string; readonly target: string } | undefined;
  /** The chains, by network. */
  readonly networks: { readonly [K in N]: HarnessNetwork<K> };
  /**
   * Signs a payment, and sends it nowhere. Give the result to a server, or change it and give it to {@link verify}.
   *
   * @example
   * const request = await harness.sign({ network: "base", payer: "smartWallet", amount: "0.0025" });
   */
  sign(spec: PaymentSpec<N>): Promise<SignedRequest>;
  /**
   * Signs what a shop asks for, by its URL or its 402, and sends it nowhere.
   *
   * @throws {KitError} when it asks for nothing that can be paid on this harness
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
   * Signs a payment, verifies it, and settles it whatever verify said, as a server would that does not look.
   *
   * @example
   * const payment = await harness.pay({ network: "base", payer: "empty" });
   * expect(payment.verify.body).toMatchObject({ isValid: false, invalidReason: "insufficient_funds" });
   * expect(payment.receipt).toBeNull();
   */
  pay(spec: PaymentSpec<N> & SettleOptions): Promise<Payment>;
  /**
   * The same as another organization: one of the option `organizations` by its id, or any by an API key, such as those
   * of `x402-facilitator-kit/test-keys`.
   *
   * @throws {KitError} when there is no organization of that id
   *
   * @example
   * const { settle } = await harness.as("acme").pay({ network: "base", amount: "0.01" });
   */
  as(idOrApiKey: string): HarnessCaller<N>;
  /**
   * Trouble: RPC answers that get lost, come late or lie, and chains that hold, drop and reorganize.
   *
   * @example
   * await harness.faults.on("base", { method: "eth_sendRawTransaction*", nth: 2 }).answerLost();
   */
  readonly faults: Faults<N>;
  /**
   * The history of each payment: its requests and their checks, the JSON-RPC calls and transactions.
   *
   * @example
   * const { settlementId } = await harness.pay({ network: "base" });
   * console.log(await harness.journal.describe(settlementId));
   */
  readonly journal: Journal;
  /**
   * The outcome of each payment, and of every other request, newest first: the list of the studio, and of
   * `GET /payments`, which docs/guides/payments.md describes.
   *
   * @throws {KitError} when no journal is kept
   *
   * @example
   * const [newest] = await harness.payments();
   * expect(newest).toMatchObject({ payerName: "funded", settle: { outcome: "settled" } });
   */
  payments(): Promise<readonly PaymentSummary[]>;
  /**
   * Waits for a payment that no request has named before, such as one that a page or a buyer makes, and gives what the
   * service has done about it so far.
   *
   * @throws {KitError} when none comes in time (10 s by default), or no journal is kept
   */
  nextPayment(options?: { timeoutMs?: number }): Promise<PaymentJournal>;
  /**
   * A buyer who pays what a shop asks for on these chains: a test payer by name, with their money or the lack of it, a private
   * key, or a viem account.
   *
   * @throws {KitError} when the payer is none of them
   *
   * @example
   * const response = await harness.buyer("funded").fetch("http://127.0.0.1:3000/report");
   */
  buyer(payer: Payer, options?: BuyerOptions): HarnessBuyer;
  /**
   * A wallet of a test payer for a page in a test browser: a provider of EIP-1193, announced by EIP-6963.
   *
   * @throws {ConfigurationError} when there is no such payer, or the network does not run
   *
   * @example
   * const wallet = harness.wallet({ payer: "funded", network: "base" });
   * await page.exposeFunction(wallet.binding, wallet.request);
   * await page.addInitScript(wallet.script);
   */
  wallet(options?: WalletOptions<N>): BrowserWallet;
  /**
   * The configuration for a shop of the public server packages that is paid here.
   *
   * @param amount in the asset's smallest unit; of scheme “upto” the maximum
   * @param options how it is to be paid: scheme “exact”, in USDC by EIP-3009, by default; other tokens by Permit2
   *
   * @example
   * const { facilitator, accepts } = harness.shopConfig("base", "0.01");
   * const server = new x402ResourceServer(new HTTPFacilitatorClient(facilitator)).register("eip155:*", new ExactEvmScheme());
   * app.use(paymentMiddleware({ "GET /report": { accepts } }, server));
   */
  shopConfig(network: N, amount: Amount, options?: ShopOptions): ShopConfig;
  /**
   * Remembers all chains and the ledger together; `restore()` puts them back, any number of times. Take it while no
   * payment is under way. To restore it ends faults and empties the journal, as {@link reset} does, and ends snapshots that
   * were taken later. A reset ends all of them.
   *
   * @example
   * const paid = await harness.snapshot();
   * await harness.pay({ network: "base" });
   * await paid.restore();
   */
  snapshot(): Promise<HarnessSnapshot>;
  /**
   * Puts everything back to the start: accounts, contracts, blocks, pool, mining, time and fees of every chain, and
   * the service with its ledger and journal; faults are cleared. Requests under way are answered with 503.
   */
  reset(): Promise<void>;
  /** Ends everything that was started. Of a harness that was only connected to, nothing ends. */
  close(): Promise<void>;
};

/** The token of a network. What is left out is as of the network's USDC. */
export type AssetOptions = { address: Address; name?: string; version?: string; decimals?: number };

/** How a harness is started. Everything has a default. A network besides the five needs what knows it. */
export type HarnessOptions<N extends NetworkName = BuiltInNetworkName> = HarnessSettings<N> &
  NamesNetworks<N>;

/** The required source of a network besides the five. */
export type NamesNetworks<N extends NetworkName> = AddedBy<
  N,
  { networkFile: NonNullable<HarnessSettings["networkFile"]> }
>;

/** Has the compiler blame the name of a network that is not built in, unless there is a network file. */
export type CheckedNames<N extends NetworkName, File> = [File] extends [undefined]
  ? AddedBy<N, { networks?: readonly (N extends BuiltInNetworkName ? N : UnknownNetwork)[] }>
  : unknown;

/** The compiler's message about a name shows the networks. */
type UnknownNetwork = { "is not a network; there are": BuiltInNetworkName };

/** {@link HarnessOptions} whose networks the compiler does not check. */
export type HarnessSettings<N extends NetworkName = NetworkName> = {
  /** Which chains to start; all five by default. Each costs some 40 MB of memory. */
  networks?: readonly N[];
  /**
   * Networks besides the five: the path of a network file, or what would be in it. Only those start that `networks`
   * names. See docs/guides/networks.md.
   *
   * @example
   * await createHarness({ networkFile: "networks.json", networks: ["base", "my-chain"] })
   */
  networkFile?: string | NetworkData | readonly NetworkData[];
  /**
   * Where the facilitator contract stands: on base, optimism and polygon, and on the two testnets. Those of your
   * deployment make clients sign what they sign in production.
   */
  contracts?: { mainnet?: Address; testnet?: Address };
  /** Tokens other than USDC, or at other addresses; see {@link AssetOptions}. */
  assets?: Partial<Record<N, AssetOptions>>;
  /** Where the organization is paid, on every network; at a published account by default. */
  recipient?: Address;
  /**
   * Where payments may go: `contract`, to the facilitator contract alone, which forwards them to the recipient;
   * `recipients`, also straight to the recipient of the organization that settles them; `any`, also straight to any other
   * address, as public facilitators have it. As `PAY_TO` of `serve`; `contract` by default. With one of the other two,
   * {@link Harness.pay} and {@link Harness.shopConfig} pay straight to the recipient.
   *
   * @example
   * await createHarness({ networks: ["base"], payTo: "any" })
   */
  payTo?: PayToPolicy;
  /**
   * The names that `invalidReason` and `errorReason` have: the specification's, or with `reference` those of the public reference
   * facilitator. As `REASONS` of `serve`; `spec` by default.
   */
  reasons?: Dialect;
  /**
   * Organizations besides that one, with recipients and limits of their own. Each has an API key, by which
   * {@link Harness.as} speaks for it.
   *
   * @example
   * organizations: [{ id: "acme", recipient: "0x…", networks: { base: { minimumAmount: 1_000_000n } } }]
   */
  organizations?: readonly OrganizationData[];
  /**
   * The sources of forked chains: a JSON-RPC URL of the network, or a recording, which needs no network. The token is then the
   * network's real USDC, and every other contract is there too. See docs/guides/harness.md.
   *
   * @example
   * fork: { base: "https://base.example", polygon: { recording: "test/polygon.fork.json.gz" } }
   */
  fork?: Partial<Record<N, ForkOption>>;
  /** The IP address that the facilitator listens on; one of this machine alone by default. */
  host?: string;
  /** Names besides `localhost` by which other processes may call the harness, such as that of a container. */
  allowHosts?: readonly string[];
  /** The facilitator's port; any free one by default. */
  port?: number;
  /** The ports of nodes; free ones by default. */
  rpcPorts?: Partial<Record<N, number>>;
  /** How long a settle waits for its outcome, in milliseconds; as `serve` does by default. */
  settleWaitMs?: number;
  /**
   * True if the service recovers payments whose authorization was submitted directly to the token, as in
   * production with `RECOVERER_PRIVATE_KEY`; it does by default.
   */
  recovery?: boolean;
  /** True if {@link Harness.journal} is kept; it is by default. Without it the service is a little quicker. */
  journal?: boolean;
  /** True if the facilitator serves the studio too, at `/studio`; it does not by default. */
  studio?: boolean;
  /**
   * The address of a shop to put a recording proxy in front of, at {@link Harness.shop}: `payments()` and the studio then show
   * the exchange of client and shop too. See docs/guides/payments.md.
   *
   * @example
   * await createHarness({ networks: ["base"], shop: "http://127.0.0.1:3000" })
   */
  shop?: string;
  /** "fatal" by default: tests provoke failures, and those are no news. */
  logLevel?: LogLevel;
  /**
   * Makes runs repeatable, to the hash of each block: the same calls give the same chains. Chain time begins at
   * 2026-01-01T00:00:00Z then, and moves by one second with each block and by `advanceTime` only.
   */
  seed?: number;
  /** Path of the anvil binary; the one of the package `@foundry-rs/anvil` by default. */
  anvilBinary?: string;
  /** Gives up the start. */
  signal?: AbortSignal;
};
