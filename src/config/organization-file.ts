import { z } from "zod";
import { publishedApiKey, testKeys } from "../payer/test-keys.ts";
import type { Address } from "../protocol/hex.ts";
import type { NetworkName } from "../protocol/networks.ts";
import { parseUint256 } from "../protocol/wire-values.ts";
import { describeIssues, readBy, readDataFile } from "./data-file.ts";
import { InvalidValue, readAddress } from "./values.ts";

/** An organization on the local chains, with all defaults filled in. */
export type LocalOrganization = {
  id: string;
  name: string;
  /** Published, like every key of the local chains; derived from the id. */
  apiKey: string;
  scopes: readonly ("verify" | "settle")[];
  /** Its recipient and limits, by network. It has no recipient on other networks. */
  networks: ReadonlyMap<NetworkName, OrganizationTerms & { recipient: Address }>;
};

/** Limits on a network: the minimum payment, the daily gas budget in wei, and a ban on payers with code. */
type OrganizationTerms = {
  minimumAmount?: bigint | undefined;
  dailyGasBudget?: bigint | undefined;
  refusePayersWithCode?: boolean | undefined;
};

const taken: ReadonlySet<string> = new Set(Object.keys(testKeys));

const amount = z
  .union([z.bigint(), z.string()], 'must be whole units as a text of digits, such as "10000", or a bigint')
  .transform(
    readBy((given) => {
      const value = parseUint256(`${given}`);
      if (value !== null) return value;
      const shown = JSON.stringify(`${given}`);
      throw new InvalidValue(`must be whole units as digits, such as "10000", not ${shown}`);
    }),
  );

const terms = {
  recipient: z.string("must be an address").transform(readBy(readAddress)).optional(),
  minimumAmount: amount.optional(),
  dailyGasBudget: amount.optional(),
  refusePayersWithCode: z.boolean("must be true or false").optional(),
};

const organizationSchema = z.strictObject(
  {
    id: z
      .string("must be letters and digits: it is part of the API key")
      .regex(/^[0-9A-Za-z]{1,32}$/, "must be 1 to 32 letters and digits: it is part of the API key")
      .refine((id) => !taken.has(id), "is that of a published test key: choose another"),
    name: z
      .string("must be a text")
      .regex(/^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]{1,100}$/u, "must be 1 to 100 characters on one line")
      .refine((name) => name.trim() === name, "must not begin or end with a space")
      .optional(),
    scopes: z
      .array(z.enum(["verify", "settle"], "must be verify or settle"), "must be a list of verify and settle")
      .min(1, "must name verify or settle")
      .default(["verify", "settle"]),
    ...terms,
    networks: z
      .record(z.string(), z.strictObject(terms, "must be a recipient or limits"), "must be networks by name")
      .default({}),
  },
  "must be an organization",
);

/**
 * An organization on the local chains: its recipient and limits on every network, which `networks` overrides for
 * single ones. Without a recipient it may verify but not settle, as in production. Amounts are in the asset's smallest
 * unit, the gas budget in wei per day, as bigint or text.
 */
export type OrganizationData = z.input<typeof organizationSchema>;

/**
 * Reads one organization, or a list of them, from data.
 *
 * @param running the started networks
 * @throws {InvalidValue} with all problems, each with its field
 */
export function readOrganizations(
  data: unknown,
  running: readonly NetworkName[],
): readonly LocalOrganization[] {
  const isList = Array.isArray(data);
  const { data: read, error } = z.array(organizationSchema).safeParse(isList ? data : [data]);
  if (error !== undefined) throw new InvalidValue(describeIssues(data, error));
  const ids = read.map(({ id }) => id);
  const twice = ids.find((id, index) => ids.indexOf(id) < index);
  if (twice !== undefined) throw new InvalidValue(`names the organization ${twice} twice`);
  return read.map(({ id, name = id, scopes, networks, ...everywhere }) => {
    const absent = Object.keys(networks).find((network) => !running.includes(network));
    if (absent !== undefined) {
      throw new InvalidValue(`${id}: ${absent} is not started; started: ${running.join(", ")}`);
    }
    return {
      id,
      name,
      apiKey: publishedApiKey(id),
      scopes,
      networks: new Map(
        running.flatMap((network) => {
          const { recipient, ...limits } = { ...everywhere, ...networks[network] };
          return recipient === undefined ? [] : [[network, { recipient, ...limits }] as const];
        }),
      ),
    };
  });
}

/** Reads organizations from a JSON file. */
export function readOrganizationFile(path: string, running: readonly NetworkName[]) {
  return readDataFile(path, (data) => readOrganizations(data, running));
}
