import type { KnownNetworks } from "../../config/known-networks.ts";
import { readNetworkData } from "../../config/network-file.ts";
import { readOrganizations } from "../../config/organization-file.ts";
import { attempt } from "../../config/values.ts";
import { builtInNetworks } from "../../protocol/networks.ts";
import { KitError } from "../../util/errors.ts";
import type { StartOptions } from "./running-harness.ts";
import type { Session, SessionSettings } from "./session.ts";

/** The settings of a session as options, with the networks that they use. */
type SavedOptions = Omit<SessionSettings, "added" | "organizations"> &
  Pick<StartOptions, "organizations"> & { knownNetworks: KnownNetworks };

/** Placeholders for fields that a network file requires but a local chain does not use. */
const ofLiveChains = { confirmations: 1, blockTimeMs: 1_000, maxFeeGwei: "1" };

/** Returns the settings of a harness that was started with these options. */
export function settingsOf(options: StartOptions): SessionSettings {
  const { networks, knownNetworks = builtInNetworks, facilitatorContracts, assets = {}, recipient } = options;
  const { payTo = "contract", strictness = "spec", reasons = "spec", settleWaitMs } = options;
  const { organizations = [], recovery = true, discovery = false, claims = [], open } = options;
  return {
    networks,
    added: knownNetworks.all
      .filter(({ name }) => networks.includes(name) && builtInNetworks.named(name) === undefined)
      .map(({ name, caip2, tier, nativeCoin, usdc }) => {
        const { address, version, decimals, symbol } = usdc;
        const token = { address, name: usdc.name, version, decimals, symbol };
        return { name, caip2, tier, nativeCoin, token, ...ofLiveChains };
      }),
    facilitatorContracts,
    assets: Object.fromEntries(
      Object.entries(assets).flatMap(([name, token]) => (token === undefined ? [] : [[name, token]])),
    ),
    recipient,
    payTo,
    strictness,
    reasons,
    organizations: organizations.map(({ id, name, scopes, networks: terms }) => ({
      id,
      name,
      scopes,
      networks: Object.fromEntries(
        [...terms].map(([network, { minimumAmount, dailyGasBudget, ...term }]) => [
          network,
          { ...term, minimumAmount: minimumAmount?.toString(), dailyGasBudget: dailyGasBudget?.toString() },
        ]),
      ),
    })),
    settleWaitMs,
    recovery,
    discovery,
    claims: [...claims],
    open: open !== undefined,
  };
}

/**
 * Converts the settings of a session to options.
 *
 * @param known the networks that are known here
 * @throws {KitError} if a network or an organization cannot be read
 */
export function readSettings(settings: SessionSettings, known: KnownNetworks): SavedOptions {
  const { added, organizations, ...rest } = settings;
  const { networks } = rest;
  const isKnown = (one: KnownNetworks) => networks.every((name) => one.named(name) !== undefined);
  const read = attempt(() => {
    const knownNetworks = isKnown(known) ? known : readNetworkData(added);
    return { knownNetworks, organizations: readOrganizations(organizations, networks) };
  });
  if ("value" in read) return { ...rest, ...read.value };
  throw new KitError(`The settings of the saved session cannot be read: ${read.problem}`);
}

/** Describes the addresses of contract and token by network. A session can only continue with the same ones. */
export function placesOf({
  networks,
  facilitatorContracts,
  assets = {},
}: Pick<StartOptions, "networks" | "facilitatorContracts" | "assets">): Session["setting"] {
  const { mainnet, testnet } = facilitatorContracts;
  return Object.fromEntries(
    networks.map((name) => [
      name,
      [`contracts ${mainnet} and ${testnet}`, assets[name] && `token ${assets[name].address}`]
        .filter((part) => part !== undefined)
        .join(", "),
    ]),
  );
}
