export type { Address } from "../../protocol/hex.ts";
export type { NetworkName } from "../../protocol/networks.ts";
export { KitError } from "../../util/errors.ts";
export {
  type OpenOrganizations,
  type OpenOrganizationsOptions,
  openOrganizations,
} from "./open-organizations.ts";
export type { Limits } from "./organizations.ts";
export {
  type Caller,
  type Change,
  type ChangeAction,
  type IssuedKey,
  type KeyIssuing,
  type KeyRecord,
  type KeyState,
  type Organization,
  type OrganizationAdministration,
  type Organizations,
  type PepperState,
  type Scope,
  scopes,
} from "./organizations.ts";
