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

/** The operations that a key can allow. */
export const scopes = ["verify", "settle"] as const;

export type Scope = (typeof scopes)[number];

/** An organization. Its payments are settled to the recipient it has set for each network. */
export type Organization = {
  id: string;
  name: string;
  recipients: Readonly<Partial<Record<NetworkName, Address>>>;
  limits: Readonly<Partial<Record<NetworkName, Limits>>>;
};

/** The organization that an API key belongs to. */
export type Caller = {
  organization: Organization;
  keyId: string;
  scopes: readonly Scope[];
};

/**
 * | State | Meaning |
 * |---|---|
 * | active | authenticates its organization |
 * | replaced | still does until it expires: another key was issued in its place |
 * | expired | its expiry time has passed |
 * | revoked | ended early, for good |
 */
export type KeyState = "active" | "replaced" | "expired" | "revoked";

/** An API key without its secret. Times are in unix milliseconds. */
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

/** One change of an organization. It never contains a secret. */
export type Change = {
  /** Counts the organization's changes from 1, without gaps. */
  number: number;
  /** Unix milliseconds. */
  at: number;
  /** Who made the change, as reported by the program that made it. */
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

/** Manages organizations; needs no secret. Every change is one transaction, including its entry in the audit trail. */
export type OrganizationAdministration = {
  create(organization: { id?: string; name: string }): Promise<Organization>;
  find(id: string): Promise<Organization | null>;
  /** All organizations, oldest first. */
  list(): Promise<readonly Organization[]>;
  setRecipient(organizationId: string, network: NetworkName, recipient: Address): Promise<void>;
  /** Sets limits on a network that has a recipient. Undefined leaves a limit unchanged, null removes it. */
  setLimits(
    organizationId: string,
    network: NetworkName,
    limits: { [Limit in keyof Limits]?: Limits[Limit] | undefined },
  ): Promise<void>;
  /** All keys of an organization, oldest first, including those that no longer work. */
  listKeys(organizationId: string): Promise<readonly KeyRecord[]>;
  /** Revokes a key for good, within a second on every instance. */
  revokeKey(keyId: string): Promise<void>;
  /** The audit trail of an organization, oldest first. */
  listChanges(organizationId: string): Promise<readonly Change[]>;
};

/** Issues keys, which needs the pepper. */
export type KeyIssuing = {
  /**
   * Issues a key `x4k_<id>_<secret>`; only an HMAC of it is stored, and the secret is never shown again. `key` imports
   * an existing key (the harness's published one) instead of drawing a new one. `expiresAt` is in unix milliseconds; a
   * key without it does not expire.
   */
  createKey(
    organizationId: string,
    options: { scopes: readonly Scope[]; expiresAt?: number | undefined; key?: string },
  ): Promise<IssuedKey>;
  /**
   * Issues a key with the scopes of another one, which then expires after `graceMs`, or earlier if it already would
   * have. Both work until then. `expiresAt` applies to the new key.
   */
  rotateKey(
    keyId: string,
    options: { graceMs: number; expiresAt?: number | undefined },
  ): Promise<IssuedKey & { oldExpiresAt: number }>;
};

/** Organizations, their recipients and their API keys. */
export type Organizations = OrganizationAdministration &
  KeyIssuing & {
    /** Returns the caller of a key; null if it is malformed, unknown, wrong, revoked or expired, all in constant time. */
    authenticate(key: string): Promise<Caller | null>;
    /** Checks if the pepper is the one that the keys in the database were made with. */
    checkPepper(): Promise<PepperState>;
    /** Makes this the pepper of the database; returns how many keys made with another one stop working. */
    acceptPepper(): Promise<number>;
  };

/**
 * | State | Meaning |
 * |---|---|
 * | right | the keys were made with it |
 * | wrong | they were made with another one: no key would be recognized |
 * | unknown | there is no key yet, or no key from before the pepper was recorded has been used since |
 */
export type PepperState = "right" | "wrong" | "unknown";

/** Decides which of an organization's payments on one network are settled. */
export type Limits = {
  /** The minimum amount of a payment, in the asset's smallest unit; null for any. */
  minimumAmount: bigint | null;
  /** The maximum gas cost of the organization's settlements per day (UTC), in wei; null for the network's default. */
  dailyGasBudget: bigint | null;
  /** True if payers with code are refused: contract wallets, and accounts with a delegate (EIP-7702). */
  refusePayersWithCode: boolean;
};

/** Returns the refusal of a payment that is too small for its organization; otherwise undefined. */
export function belowMinimum(limits: Limits | undefined, value: bigint): Invalid | undefined {
  const minimum = limits?.minimumAmount ?? null;
  if (minimum === null || value >= minimum) return undefined;
  return refusals.belowMinimum(value, minimum);
}

/**
 * Returns the refusal of a payment because of its payer's code; undefined if it may be settled.
 *
 * @param payerCode the hash of the code, null for a plain account; undefined if it was not read, which is an error if
 * the limits depend on it
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

/** Addresses that no organization can be paid at, by network, each with a description such as "the facilitator contract". */
export type ReservedAddresses = Readonly<
  Partial<Record<NetworkName, readonly { address: Address; what: string }[]>>
>;

/** The reserved addresses of the configured networks: their facilitator contracts and tokens. */
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

/** Like {@link reserve}, from the contracts of the tiers and additional tokens. */
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
 * Rejects a wallet at which an organization could not be paid: a mistyped one (EIP-55), the zero address, the
 * facilitator contract, and the tokens, which would keep what is sent to them.
 *
 * @throws KitError with the reason
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
