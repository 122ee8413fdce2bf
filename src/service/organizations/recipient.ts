import { type Address, readAddress, sameAddress } from "../../protocol/hex.ts";
import {
  builtInNetworks,
  type Network,
  type NetworkName,
  type NetworkTier,
} from "../../protocol/networks.ts";
import { KitError } from "../../util/errors.ts";

/** Addresses that no organization can be paid at, by network, and what each is: "the facilitator contract". */
export type ReservedAddresses = Readonly<
  Partial<Record<NetworkName, readonly { address: Address; what: string }[]>>
>;

/** What a network's configuration reserves: its facilitator contract and its tokens. */
export function reserve(
  configured: readonly {
    name: NetworkName;
    facilitatorContract?: Address | undefined;
    assets: readonly { address: Address; name: string }[];
  }[],
): ReservedAddresses {
  return Object.fromEntries(
    configured.map(({ name, facilitatorContract, assets }) => [
      name,
      [
        ...(facilitatorContract ? [{ address: facilitatorContract, what: "the facilitator contract" }] : []),
        ...assets.map((asset) => ({ address: asset.address, what: `the token "${asset.name}"` })),
      ],
    ]),
  );
}

/** The same for the contracts of the tiers and further tokens. */
export function reserveByTier(
  contracts: Readonly<Partial<Record<NetworkTier, Address>>>,
  tokens: readonly { network: NetworkName; address: Address; name: string }[] = [],
  networks: readonly Network[] = builtInNetworks.all,
): ReservedAddresses {
  return reserve(
    networks.map(({ name, tier, usdc }) => ({
      name,
      facilitatorContract: contracts[tier],
      // USDC of the built-in networks is always reserved.
      assets: [
        ...(builtInNetworks.named(name) === undefined ? [usdc] : []),
        ...tokens.filter(({ network }) => network === name),
      ],
    })),
  );
}

/**
 * Refuses a wallet at which an organization could not be paid: one that is mistyped (EIP-55), the zero address, the
 * facilitator contract, and the tokens, which would keep what is sent to them.
 *
 * @throws KitError that says why
 */
export function requirePayable(recipient: string, network: NetworkName, reserved: ReservedAddresses): void {
  const { address, problem } = readAddress(recipient);
  const { usdc } = builtInNetworks.named(network) ?? {};
  const known = usdc === undefined ? [] : [{ address: usdc.address, what: "the token USDC" }];
  const taken =
    address && [...known, ...(reserved[network] ?? [])].find((one) => sameAddress(one.address, address));
  const why = taken ? `is ${taken.what} on ${network}, and not a wallet` : problem;
  if (why !== undefined) throw new KitError(`The recipient ${JSON.stringify(recipient)} ${why}`);
}
