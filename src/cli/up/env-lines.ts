import { contractVariables, rpcVariableOf } from "../../config/variables.ts";
import { type HarnessDescription, networksOf } from "../../harness/control/description.ts";
import { builtInNetworks } from "../../protocol/networks.ts";

/** What a shop and its tests need of a running `up`, as lines of a `.env`. The first network is where is paid. */
export function describeAsEnv(harness: HarnessDescription): string {
  const { facilitator, organization, payers } = harness;
  const running = networksOf(harness).flatMap((name) => {
    const network = harness.networks[name];
    return network === undefined ? [] : [{ name, ...network }];
  });
  const [first] = running;
  const lines: [string, string | undefined][] = [
    ["X402_FACILITATOR_URL", facilitator.url],
    ["X402_API_KEY", organization.apiKey],
    ["X402_NETWORK", first?.caip2],
    ["X402_PAY_TO", first?.facilitatorContract],
    ["X402_ASSET", first?.asset.address],
    ["PAYER_PRIVATE_KEY", payers.funded?.privateKey],
    ...running.flatMap(({ name, rpcUrl, facilitatorContract, tier }): [string, string][] => [
      [rpcVariableOf(name), rpcUrl],
      [contractVariables[tier ?? builtInNetworks.named(name)?.tier ?? "mainnet"], facilitatorContract],
    ]),
  ];
  return [...new Map(lines)]
    .flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}`]))
    .join("\n");
}
