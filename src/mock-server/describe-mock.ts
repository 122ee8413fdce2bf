import type { ScenarioEnvironment } from "../fixtures/engine/environment.ts";
import type { Address, Hex } from "../protocol/hex.ts";
import type { Asset, NetworkName } from "../protocol/networks.ts";
import { testKeys, testOrganizations } from "../published/test-keys.ts";
import { testPayers } from "../published/test-payers.ts";

/** What a mock server is made of: as `x402-kit up` describes itself, without what chains have. */
export type MockDescription = {
  facilitator: { url: string };
  /** Where tests say how requests are to end, and see what was asked. */
  control: {
    scenario: string;
    scenarios: string;
    calls: string;
    advanceTime: string;
    clock: string;
    reset: string;
    sessions: string;
  };
  organization: { id: string; apiKey: string; recipient: Address };
  payers: Readonly<Record<string, { address: Address; privateKey: Hex }>>;
  networks: Readonly<
    Partial<
      Record<NetworkName, { chainId: number; caip2: string; facilitatorContract: Address; asset: Asset }>
    >
  >;
};

export function describeMock(origin: string, { networks }: ScenarioEnvironment): MockDescription {
  const { apiKey, organizationId } = testKeys.local;
  return {
    facilitator: { url: `${origin}/v1` },
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
