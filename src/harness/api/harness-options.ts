import type { NetworkData } from "../../config/network-file.ts";
import type { OrganizationData } from "../../config/organization-file.ts";
import type { LogLevel } from "../../config/values.ts";
import type { Capture } from "../../observe/capture/capture-format.ts";
import type { Address } from "../../protocol/hex.ts";
import type { BuiltInNetworkName, NetworkName } from "../../protocol/networks.ts";
import type { PayToPolicy } from "../../protocol/signed-payment.ts";
import type { ForkOption } from "../fork/fork-options.ts";
import type { Harness } from "./harness-api.ts";

/** The token of a network. What is left out is as of the network's USDC. */
export type AssetOptions = { address: Address; name?: string; version?: string; decimals?: number };

/** How a harness is started. Everything has a default. */
export type HarnessOptions<N extends NetworkName = BuiltInNetworkName> = {
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
   * Organizations besides that one, with recipients and limits of their own. Each has an API key, by which
   * {@link Harness.as} speaks for it.
   *
   * @example
   * organizations: [{ id: "acme", recipient: "0x…", networks: { base: { minimumAmount: 1_000_000n } } }]
   */
  organizations?: readonly OrganizationData[];
  /**
   * What chains are forked from: a JSON-RPC URL of the network, or a recording of it that needs no network. The token
   * is the network's real USDC there, and everything else of the network is at hand. See docs/guides/harness.md.
   *
   * @example
   * fork: { base: "https://base.example", polygon: { recording: "test/polygon.fork.json.gz" } }
   */
  fork?: Partial<Record<N, ForkOption>>;
  /** The IP address that the facilitator listens on; one of this machine alone by default. */
  host?: string;
  /** Names besides `localhost` by which other processes may control the harness, such as that of a container. */
  allowHosts?: readonly string[];
  /** The facilitator's port; any free one by default. */
  port?: number;
  /** The ports of nodes; free ones by default. */
  rpcPorts?: Partial<Record<N, number>>;
  /** How long a settle waits for its outcome, in milliseconds; as `serve` does by default. */
  settleWaitMs?: number;
  /**
   * Whether the service recovers payments whose authorization was submitted straight to the token, as in
   * production with `RECOVERER_PRIVATE_KEY`; it does by default.
   */
  recovery?: boolean;
  /** Whether {@link Harness.journal} is kept; it is by default. Without it the service is a little quicker. */
  journal?: boolean;
  /** Whether the facilitator serves the studio too, at `/studio`; it does not by default. */
  studio?: boolean;
  /** "fatal" by default: tests provoke failures, and those are no news. */
  logLevel?: LogLevel;
  /**
   * Makes runs repeatable, to the hash of each block: the same calls give the same chains. Chain time begins at
   * 2026-01-01T00:00:00Z then, and moves by one second with each block and by `advanceTime` only.
   */
  seed?: number;
  /**
   * A payment that `x402-kit capture` wrote to a file: the path, or what is in the file. One chain starts, with the
   * contract, the token, the payer's state, the head and the clock that the payment was judged by.
   * See docs/guides/payments.md.
   *
   * @example
   * const harness = await createHarness({ capture: "bug.x402.json" });
   * expect((await harness.captured.replay()).verdict).toBe(harness.captured.verdict);
   */
  capture?: string | Capture;
  /** Path of the anvil binary; the one of the package `@foundry-rs/anvil` by default. */
  anvilBinary?: string;
  /** Gives up the start. */
  signal?: AbortSignal;
};
