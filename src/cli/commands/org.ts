import { readContracts } from "../../config/served-networks.ts";
import { readLimit, readOneOf } from "../../config/values.ts";
import { contractVariables } from "../../config/variables.ts";
import { networkNames } from "../../protocol/networks.ts";
import { noOrganization } from "../../service/organizations/administration.ts";
import { type Organization, reserveByTier } from "../../service/organizations/organizations.ts";
import { self } from "../../util/self-command.ts";
import { asText, renderTable } from "../../util/text.ts";
import {
  actorOption,
  defineCommand,
  networkOptions,
  option,
  requiredAddress,
  textOption,
} from "../kit/command.ts";
import { usesDatabase, usingDatabase, withOrganizations } from "../kit/with-database.ts";
import { describeKeys, keyAsJson, organizationOption } from "./key.ts";

export const orgCreate = defineCommand({
  ...usesDatabase,
  options: {
    name: textOption("NAME", "what people call it", { example: '"Coffee shop"', required: true }),
    id: textOption("ID", "its id, of letters, digits, _ and - (default: drawn at random)", {
      example: "coffee-shop",
    }),
    actor: actorOption,
  },

  run: ({ name, id, actor }, _terminal, { databaseUrl }) =>
    withOrganizations({ databaseUrl, actor }, async (organizations) => {
      const created = await organizations.create({ name, ...(id === undefined ? {} : { id }) });
      return {
        json: organizationAsJson(created),
        text: [
          `Created ${created.id} (${name}). Next:`,
          `  ${self} org set-recipient --id ${created.id} --network NAME --address 0x…`,
          `  ${self} key create --org ${created.id}`,
        ].join("\n"),
      };
    }),
});

export const orgList = defineCommand({
  ...usesDatabase,
  options: {},

  run: (_values, _terminal, { databaseUrl }) =>
    withOrganizations({ databaseUrl }, async (administration) => {
      const organizations = await administration.list();
      const rows = organizations.map(({ id, name, recipients }) => [
        id,
        name,
        Object.keys(recipients).join(", ") || "no network yet",
      ]);
      return {
        json: organizations.map(organizationAsJson),
        text:
          rows.length === 0
            ? `There is no organization yet: ${self} org create --name NAME`
            : renderTable(["id", "name", "paid on"], rows),
      };
    }),
});

export const orgShow = defineCommand({
  ...usesDatabase,
  options: { id: organizationOption },

  run: ({ id }, _terminal, { databaseUrl }) =>
    withOrganizations({ databaseUrl }, async (organizations) => {
      const organization = await organizations.find(id);
      if (organization === null) throw noOrganization(id);
      const [keys, changes] = [await organizations.listKeys(id), await organizations.listChanges(id)];
      const columns = [{ right: "#" }, "time", "who", "what", "details"];
      const rows = changes.map(({ number, at, actor, action, details }) => [
        String(number),
        new Date(at).toISOString(),
        actor,
        action,
        describeDetails(details),
      ]);
      return {
        json: {
          ...organizationAsJson(organization),
          keys: keys.map(keyAsJson),
          changes: changes.map((change) => ({ ...change, at: new Date(change.at).toISOString() })),
        },
        text: [
          `${organization.id}: ${organization.name}`,
          describeNetworks(organization),
          `Keys\n${describeKeys(keys)}`,
          `Changes\n${renderTable(columns, rows)}`,
        ].join("\n\n"),
      };
    }),
});

export const orgSetRecipient = defineCommand({
  ...usingDatabase([...Object.values(contractVariables), "ASSETS", "NETWORKS_FILE"], (reader) => ({
    reserved: reserveByTier(readContracts(reader), reader.read("ASSETS"), reader.networks.all),
  })),
  options: {
    id: organizationOption,
    ...networkOptions,
    address: requiredAddress("the wallet that is paid; payments under way still go to the one before"),
    actor: actorOption,
  },

  run: ({ id, network, address, actor }, _terminal, { databaseUrl, reserved }) =>
    withOrganizations({ databaseUrl, actor, reserved }, async (organizations) => {
      await organizations.setRecipient(id, network, address);
      return {
        json: { id, network, recipient: address },
        text: `${id} is paid at ${address} on ${network}, on every instance within a second.`,
      };
    }),
});

const payersWithCode = ["accept", "refuse"] as const;
const limitOptions = ["minimum-amount", "daily-gas-budget", "payers-with-code"] as const;

export const orgSetLimits = defineCommand({
  ...usesDatabase,
  options: {
    id: organizationOption,
    ...networkOptions,
    "minimum-amount": limit("least amount that is settled, in the asset's smallest unit", "UNITS", "10000"),
    "daily-gas-budget": limit(
      "most that settling may cost in gas per day (UTC), in wei; without it, DAILY_GAS_BUDGET of `serve` holds",
      "WEI",
      "5000000000000000",
    ),
    "payers-with-code": option(
      payersWithCode.join("|"),
      "whether contract wallets and accounts with a delegate (EIP-7702) may pay (default: as it is)",
      { read: readOneOf(payersWithCode), example: "refuse" },
    ),
    actor: actorOption,
  },

  check: (values) =>
    // An option that was given but could not be read is missing from the values.
    limitOptions.every((name) => name in values && values[name] === undefined)
      ? [
          {
            name: "--minimum-amount",
            problem: "this one, --daily-gas-budget or --payers-with-code is needed",
            example: "--minimum-amount 10000",
          },
        ]
      : [],

  run: ({ id, network, actor, ...values }, _terminal, { databaseUrl }) =>
    withOrganizations({ databaseUrl, actor }, async (organizations) => {
      const payers = values["payers-with-code"];
      await organizations.setLimits(id, network, {
        minimumAmount: values["minimum-amount"],
        dailyGasBudget: values["daily-gas-budget"],
        refusePayersWithCode: payers === undefined ? undefined : payers === "refuse",
      });
      const organization = await organizations.find(id);
      if (organization === null) throw noOrganization(id);
      return { json: organizationAsJson(organization), text: describeNetworks(organization) };
    }),
});

function limit(describe: string, placeholder: string, example: string) {
  return option(placeholder, `${describe}, or \`none\` (default: as it is)`, {
    read: readLimit,
    example,
  });
}

/** An organization as JSON; amounts are decimal strings in smallest units. */
function organizationAsJson({ id, name, recipients, limits }: Organization) {
  // The built-in networks in their order, followed by the others.
  const names = [...new Set([...networkNames, ...Object.keys(recipients)])];
  const networks = names.flatMap((network) => {
    const recipient = recipients[network];
    if (recipient === undefined) return [];
    const { minimumAmount, dailyGasBudget, refusePayersWithCode = false } = limits[network] ?? {};
    const settings = {
      recipient,
      minimumAmount: minimumAmount?.toString() ?? null,
      dailyGasBudget: dailyGasBudget?.toString() ?? null,
      refusePayersWithCode,
    };
    return [[network, settings] as const];
  });
  return { id, name, networks: Object.fromEntries(networks) };
}

function describeNetworks(organization: Organization): string {
  const { networks } = organizationAsJson(organization);
  const rows = Object.entries(networks);
  if (rows.length === 0) {
    return `No recipient yet: ${self} org set-recipient --id ${organization.id} --network NAME --address 0x…`;
  }
  return renderTable(
    ["network", "recipient", { right: "least amount" }, { right: "gas per day (wei)" }, "payers with code"],
    rows.map(([network, { recipient, minimumAmount, dailyGasBudget, refusePayersWithCode }]) => [
      network,
      recipient,
      minimumAmount ?? "any",
      dailyGasBudget ?? "DAILY_GAS_BUDGET",
      refusePayersWithCode ? "refused" : "accepted",
    ]),
  );
}

/** Such as `network base, from 0x…, to 0x…`. */
function describeDetails(details: Readonly<Record<string, unknown>>): string {
  return Object.entries(details)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name} ${isTime(name, value) ? new Date(value).toISOString() : asText(value)}`)
    .join(", ");
}

function isTime(name: string, value: unknown): value is number {
  return /expiresAt$/i.test(name) && typeof value === "number";
}
