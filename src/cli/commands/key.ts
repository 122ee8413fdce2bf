import { InvalidValue, readDuration, readMoment, readOneOf } from "../../config/values.ts";
import { type KeyRecord, type Scope, scopes } from "../../organizations/organizations.ts";
import type { Option } from "../kit/options.ts";
import { renderTable } from "../kit/table.ts";

/** What a new key may do. */
export const scopesOption = {
  describe: `what it may be used for, separated by commas (default ${scopes.join(",")})`,
  placeholder: "SCOPES",
  example: scopes.join(","),
  read: (text: string): readonly Scope[] => text.split(",").map((word) => readOneOf(scopes)(word.trim())),
  fallback: scopes,
} satisfies Option<readonly Scope[]>;

/** When a new key stops working. */
export const expiryOption = {
  describe: "when it stops working: after so many days (90d) or hours (12h), or at a date (default never)",
  placeholder: "WHEN",
  example: "90d",
  read: (text: string): number | undefined =>
    /^\d+[a-z]$/.test(text) ? Date.now() + readDuration(text) : readMoment(text),
  fallback: undefined,
} satisfies Option<number | undefined>;

/** Which key a command is about. */
export const keyOption = {
  describe: "the key's id: the middle part of x4k_<id>_<secret>",
  placeholder: "ID",
  example: "0123456789abcdef",
  read(text: string) {
    // Somebody is about to put a secret into a shell's history.
    if (/^x4k_/.test(text))
      throw new InvalidValue("is a whole key; its id is the part in the middle, and no secret");
    return text;
  },
  required: true,
} satisfies Option<string>;

const isoTime = (time: number | null) => (time === null ? null : new Date(time).toISOString());

export function keyAsJson({ createdAt, expiresAt, revokedAt, ...key }: KeyRecord) {
  return {
    ...key,
    createdAt: isoTime(createdAt),
    expiresAt: isoTime(expiresAt),
    revokedAt: isoTime(revokedAt),
  };
}

/** Keys as a table. */
export function describeKeys(keys: readonly KeyRecord[]): string {
  if (keys.length === 0) return "None yet: x402-kit key create --org ID";
  const columns = ["id", "state", "scopes", "created", "expires", "replaced by"].map((heading) => ({
    heading,
  }));
  const rows = keys.map((key) => [
    key.keyId,
    key.state,
    key.scopes.join(", "),
    isoTime(key.createdAt) ?? "",
    isoTime(key.expiresAt) ?? "never",
    key.replacedBy ?? "",
  ]);
  return renderTable(columns, rows);
}

/** What a person does with a new key. */
export function describeIssued(key: string): string {
  return `\n  ${key}\n\nIt is shown this once. Keep it where secrets are kept.`;
}
