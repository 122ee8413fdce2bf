import { testKeys, testOrganizations } from "./test-keys.ts";

/**
 * The organization that is paid on the local chains. Its API key is published, like every key of the harness, and
 * works on no other deployment: there is no such organization there.
 */
export const localOrganization = {
  id: testKeys.local.organizationId,
  ...testOrganizations.org_local,
  apiKey: testKeys.local.apiKey,
} as const;
