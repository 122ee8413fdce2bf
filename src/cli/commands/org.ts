import type { Organization } from "../../organizations/organizations.ts";
import { networkNames } from "../../protocol/networks.ts";
import type { Option } from "../kit/options.ts";
import { renderTable } from "../kit/table.ts";

/** Which organization a command is about. */
export const organizationOption = {
  describe: "the organization's id",
  placeholder: "ID",
  example: "org_0123456789abcdef",
  read: (text: string) => text,
  required: true,
} satisfies Option<string>;

/** An organization as JSON: amounts are decimal text in smallest units. */
export function organizationAsJson({ id, name, recipients, limits }: Organization) {
  const networks = networkNames.flatMap((network) => {
    const recipient = recipients[network];
    if (recipient === undefined) return [];
    const { minimumAmount, dailyGasBudget } = limits[network] ?? {};
    const settings = {
      recipient,
      minimumAmount: minimumAmount?.toString() ?? null,
      dailyGasBudget: dailyGasBudget?.toString() ?? null,
    };
    return [[network, settings] as const];
  });
  return { id, name, networks: Object.fromEntries(networks) };
}

/** The networks of an organization, as a table. */
export function describeNetworks(organization: Organization): string {
  const { networks } = organizationAsJson(organization);
  const rows = Object.entries(networks);
  if (rows.length === 0) {
    return `No recipient yet: x402-kit org set-recipient --id ${organization.id} --network NAME --address 0x…`;
  }
  return renderTable(
    [
      { heading: "network" },
      { heading: "recipient" },
      { heading: "least amount", right: true },
      { heading: "gas per day (wei)", right: true },
    ],
    rows.map(([network, { recipient, minimumAmount, dailyGasBudget }]) => [
      network,
      recipient,
      minimumAmount ?? "any",
      dailyGasBudget ?? "any",
    ]),
  );
}
