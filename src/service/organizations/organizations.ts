import type { Invalid } from "../../protocol/catalogue.ts";
import { type Address, type Hex, readAddress, sameAddress } from "../../protocol/hex.ts";
import {
  builtInNetworks,
  type Network,
  type NetworkName,
  type NetworkTier,
} from "../../protocol/networks.ts";
import { refusals } from "../../protocol/refusals.ts";
import { KitError } from "../../util/errors.ts";

/** The operations that a key may be allowed. */
export const scopes = ["verify", "settle"] as const;

export type Scope = (typeof scopes)[number];

/** An organization: whose payments are settled to the recipient it has set for each network. */
export type Organization = {
  id: string;
  name: string;
  recipients: Readonly<Partial<Record<NetworkName, Address>>>;
  limits: Readonly<Partial<Record<NetworkName, Limits>>>;
};

/** The organization that an API key authenticates. */
export type Caller = {
  organization: Organization;
  keyId: string;
  scopes: readonly Scope[];
};

/**
 * | State | Meaning |
 * |---|---|
 * | active | speaks for its organization |
 * | replaced | still does, until it expires: another key was issued in its place |
 * | expired | its time is over |
 * | revoked | was taken back |
 */
export type KeyState = "active" | "replaced" | "expired" | "revoked";

/** An API key without its secret. Times in unix milliseconds. */
export type KeyRecord = {
  keyId: string;
  organizationId: string;
  scopes: readonly Scope[];
  state: KeyState;
  createdAt: number;
  expiresAt: number | null;
  revokedAt: number | null;
  replacedBy: string | null;
};

/** One change of an organization. It never holds a secret. */
export type Change = {
  /** Counts the organization's changes from 1, without gaps. */
  number: number;
  /** Unix milliseconds. */
  at: number;
  /** Who made it, as the program that did says. */
  actor: string;
  action: ChangeAction;
  details: Readonly<Record<string, unknown>>;
};

export const changeActions = [
  "organization created",
  "recipient set",
  "limits set",
  "key created",
  "key rotated",
  "key revoked",
] as const;

export type ChangeAction = (typeof changeActions)[number];

/** An issued key. Its secret is shown only here. */
export type IssuedKey = { key: string; keyId: string };

/** Needs no secret. Every change is one transaction, with its entry in the audit trail. */
export type OrganizationAdministration = {
  create(organization: { id?: string; name: string }): Promise<Organization>;
  find(id: string): Promise<Organization | null>;
  /** All of them, oldest first. */
  list(): Promise<readonly Organization[]>;
  setRecipient(organizationId: string, network: NetworkName, recipient: Address): Promise<void>;
  /** Sets limits on a network that has a recipient. What is undefined stays as it is, null takes a limit away. */
  setLimits(
    organizationId: string,
    network: NetworkName,
    limits: { [Limit in keyof Limits]?: Limits[Limit] | undefined },
  ): Promise<void>;
  /** The keys of an organization, oldest first, those that no longer work included. */
  listKeys(organizationId: string): Promise<readonly KeyRecord[]>;
  /** Ends a key for good, within a second on every instance. */
  revokeKey(keyId: string): Promise<void>;
  /** The audit trail of an organization, oldest first. */
  listChanges(organizationId: string): Promise<readonly Change[]>;
};

/** Issues keys, which needs the pepper. */
export type KeyIssuing = {
  /**
   * Issues a key `x4k_<id>_<secret>`; the secret is stored as an HMAC alone and never shown again.
   * `key` imports a given one (the harness's published key) instead of drawing a new one. `expiresAt` is in unix
   * milliseconds; a key without it does not expire.
   */
  createKey(
    organizationId: string,
    options: { scopes: readonly Scope[]; expiresAt?: number | undefined; key?: string },
  ): Promise<IssuedKey>;
  /**
   * Issues a key with the scopes of another, which from then on expires after `graceMs`, or earlier if it did before.
   * Both work until then. `expiresAt` is the new key's.
   */
  rotateKey(
    keyId: string,
    options: { graceMs: number; expiresAt?: number | undefined },
  ): Promise<IssuedKey & { oldExpiresAt: number }>;
};

/** Organizations, their recipients and their API keys. */
export type Organizations = OrganizationAdministration &
  KeyIssuing & {
    /** The caller of a key; null when it is malformed, unknown, wrong, revoked or expired, all in the same time. */
    authenticate(key: string): Promise<Caller | null>;
    /** Checks whether the pepper is the one that the keys in the database were made with. */
    checkPepper(): Promise<PepperState>;
    /** Makes this the pepper of the database; gives how many keys stop working, which another one made. */
    acceptPepper(): Promise<number>;
  };

/**
 * | State | Meaning |
 * |---|---|
 * | right | the keys were made with it |
 * | wrong | with another one: no key would be recognized |
 * | unknown | there is no key yet, or none of those from before it was recorded has been used since |
 */
export type PepperState = "right" | "wrong" | "unknown";

/** Which of an organization's payments on one network are settled. */
export type Limits = {
  /** The least amount of one payment, in the asset's smallest unit; null for any. */
  minimumAmount: bigint | null;
  /** The most that settling for the organization may cost in gas on one day (UTC), in wei; null for the network's default. */
  dailyGasBudget: bigint | null;
  /** True if payers with code are refused: contract wallets, and accounts with a delegate (EIP-7702). */
  refusePayersWithCode: boolean;
};

/** Why a payment is too small for its organization to be settled; undefined when it is not. */
export function belowMinimum(limits: Limits | undefined, value: bigint): Invalid | undefined {
  const minimum = limits?.minimumAmount ?? null;
  if (minimum === null || value >= minimum) return undefined;
  return refusals.belowMinimum(value, minimum);
}

/**
 * Why a payer's code keeps its payment from being settled; undefined when it does not.
 *
 * @param payerCode the hash of the code, null for a plain account; undefined if it was not read, which is an error where it
 * decides
 */
export function refusedForCode(
  limits: Limits | undefined,
  payer: Address,
  payerCode: Hex | null | undefined,
): Invalid | undefined {
  if (!limits?.refusePayersWithCode) return undefined;
  if (payerCode === undefined) throw new Error("the payer's code was not read");
  return payerCode === null ? undefined : refusals.payerHasCode(payer);
}

/** Addresses that no organization can be paid at, by network, and what each is: "the facilitator contract". */
export type ReservedAddresses = Readonly<
  Partial<Record<NetworkName, readonly { address: Address; what: string }[]>>
>;

/** The reserved addresses of a network's configuration: its facilitator contract and its tokens. */
export function reserve(
  configured: readonly {
    name: NetworkName;
    facilitatorContract?: Address | undefined;
    formerContracts?: readonly Address[] | undefined;
    assets: readonly { address: Address; name: string }[];
  }[],
): ReservedAddresses {
  return Object.fromEntries(
    configured.map(({ name, facilitatorContract, formerContracts = [], assets }) => [
      name,
      [
        ...[...(facilitatorContract ? [facilitatorContract] : []), ...formerContracts].map((address) => ({
          address,
          what: "the facilitator contract",
        })),
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
