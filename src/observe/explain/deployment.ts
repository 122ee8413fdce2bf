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
  /** The addresses that payments may go to besides the contract; none by default. */
  payTo?: PayToPolicy | undefined;
  /** How strict it is where the specification does not decide; `spec` by default. */
  strictness?: Strictness | undefined;
  /** The tokens that the facilitator takes; the USDC of each network by default. */
  tokens?: KnownTokens | undefined;
};
