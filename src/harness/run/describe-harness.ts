import type { Address } from "../../protocol/hex.ts";
import { type Asset, builtInNetworks } from "../../protocol/networks.ts";
import { usualPayTo } from "../../protocol/signed-payment.ts";
import { localTokens } from "../../published/local-tokens.ts";
import { localOrganization } from "../../published/test-keys.ts";
import { testPayers } from "../../published/test-payers.ts";
import type { HarnessDescription } from "../control/description.ts";
import type { HarnessChain } from "../setup/prepare-chain.ts";
import type { StartOptions } from "./running-harness.ts";

/** What a harness that listens at `origin` is made of. */
export function describeHarness(
  origin: string,
  chains: readonly HarnessChain[],
  { seed, recipient = localOrganization.recipient, organizations = [], payTo = "contract" }: StartOptions,
): HarnessDescription {
  const { id, apiKey } = localOrganization;
  return {
    ...(seed !== undefined && { seed }),
    ...(payTo !== "contract" && { payToPolicy: payTo }),
    facilitator: { url: `${origin}/v1` },
    organization: { id, apiKey, recipient },
    ...(organizations.length > 0 && {
      organizations: organizations.map(({ id, name, apiKey, networks }) => ({
        id,
        name,
        apiKey,
        recipients: Object.fromEntries([...networks].map(([network, { recipient }]) => [network, recipient])),
      })),
    }),
    payers: Object.fromEntries(
      Object.entries(testPayers).map(([name, { address, privateKey }]) => [name, { address, privateKey }]),
    ),
    networks: Object.fromEntries(
      chains.map((chain) => [
        chain.network.name,
        describeChain(chain, usualPayTo({ ...chain, payTo }, recipient)),
      ]),
    ),
  };
}

function describeChain(
  { network, publicRpcUrl: rpcUrl, facilitatorContract, asset, tokens, hasBlacklist, node }: HarnessChain,
  payTo: Address,
) {
  const { name, chainId, caip2, tier, nativeCoin } = network;
  const added = builtInNetworks.named(name) === undefined ? { tier, nativeCoin } : {};
  const described = { chainId, caip2, rpcUrl, facilitatorContract, payTo, asset, ...added };
  if (node.fork === undefined) {
    const others = tokens.map((name): [string, Asset] => [name, localTokens[name]]);
    return others.length === 0 ? described : { ...described, tokens: Object.fromEntries(others) };
  }
  const { kind, blockNumber } = node.fork;
  return { ...described, fork: { block: Number(blockNumber), from: kind, hasBlacklist } };
}
