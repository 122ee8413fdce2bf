import { harnessAccounts } from "./accounts.ts";

/**
 * The organization that is paid on the local chains. Its API key is published, like every key of the harness, and
 * works on no other deployment: there is no such organization there.
 */
export const localOrganization = {
  id: "org_local",
  name: "Local organization",
  apiKey: "x4k_local_0000000000000000000000000000000000000000000000000000000000000402",
  recipient: harnessAccounts.recipient.address,
} as const;
