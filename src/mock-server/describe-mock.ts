import type { ScenarioEnvironment } from "../fixtures/engine/environment.ts";
import { testKeys, testOrganizations } from "../published/test-keys.ts";
import { testPayers } from "../published/test-payers.ts";

/** Describes a mock server as `x402-kit up` describes itself, without the members of chains. */
export type MockDescription = ReturnType<typeof describeMock>;

export function describeMock(origin: string, { networks }: ScenarioEnvironment) {
  const { apiKey, organizationId } = testKeys.local;
  return {
    facilitator: { url: `${origin}/v1` },
    /** Where tests choose the outcomes of requests, and read what was asked. */
    control: {
      scenario: `${origin}/__scenario`,
      scenarios: `${origin}/__scenarios`,
      calls: `${origin}/__calls`,
      advanceTime: `${origin}/__advance-time`,
      clock: `${origin}/__clock`,
      reset: `${origin}/__reset`,
      sessions: `${origin.replace(/\/__sessions\/.*$/, "")}/__sessions`,
    },
    organization: { id: organizationId, apiKey, recipient: testOrganizations[organizationId].recipient },
    payers: Object.fromEntries(
      Object.entries(testPayers).map(([name, { address, privateKey }]) => [name, { address, privateKey }]),
    ),
    networks: Object.fromEntries(
      networks.map(({ name, chainId, caip2, facilitatorContract, assets: [asset] }) => [
        name,
        { chainId, caip2, facilitatorContract, asset },
      ]),
    ),
  };
}
