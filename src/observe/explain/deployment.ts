import type { Address } from "../../protocol/hex.ts";
import type { NetworkRegistry, NetworkTier } from "../../protocol/networks.ts";
import type { PayToPolicy } from "../../protocol/signed-payment.ts";
import type { Strictness } from "../../protocol/strictness.ts";
import type { KnownTokens } from "../../protocol/token-units.ts";

/** The deployment of a facilitator: its networks, contracts and tokens. */
export type Deployment = {
  /** The known networks; the built-in ones by default. */
  networks?: NetworkRegistry | undefined;
  /** The facilitator contract of each tier of networks. */
  contracts: Readonly<Record<NetworkTier, Address>>;
  /** Which addresses may be paid besides the contract; none by default. */
  payTo?: PayToPolicy | undefined;
  /** How strict to be where the specification leaves room; `spec` by default. */
  strictness?: Strictness | undefined;
  /** The accepted tokens; by default each network's USDC. */
  tokens?: KnownTokens | undefined;
};
