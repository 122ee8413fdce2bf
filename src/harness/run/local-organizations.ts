import type { LocalOrganization } from "../../config/organization-file.ts";
import type { Address } from "../../protocol/hex.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import {
  localOrganization,
  type TestKey,
  type TestOrganization,
  testKeys,
  testOrganizations,
} from "../../published/test-keys.ts";
import type { Organizations } from "../../service/organizations/organizations.ts";

const active: ReadonlyMap<string, TestKey> = new Map(
  Object.values(testKeys)
    .filter(({ state }: TestKey) => state === "active")
    .map((key) => [key.apiKey, key]),
);

/**
 * Adds the organizations of the published API keys. Each is created by the first request with its key, so that starts
 * and resets do not wait for it. Keys that stand for one that is not good stay unknown, which is answered by the same 401.
 */
export function withTestKeys(organizations: Organizations, networks: readonly NetworkName[]): Organizations {
  const created = new Map<string, Promise<void>>();

  async function create(id: string, organization: TestOrganization): Promise<void> {
    if ((await organizations.find(id)) !== null) return;
    const { name, recipient, ...limits } = organization;
    await organizations.create({ id, name });
    if (recipient === undefined) return;
    for (const network of networks) {
      await organizations.setRecipient(id, network, recipient);
      await organizations.setLimits(id, network, limits);
    }
  }

  function once(name: string, act: () => Promise<void>): Promise<void> {
    const known = created.get(name);
    if (known !== undefined) return known;
    const creating = act();
    created.set(name, creating);
    // Tried again by the next request.
    creating.catch(() => created.delete(name));
    return creating;
  }

  return {
    ...organizations,
    async authenticate(key) {
      const known = active.get(key);
      if (known !== undefined) {
        const { organizationId, scopes } = known;
        await once(key, async () => {
          await once(organizationId, () => create(organizationId, testOrganizations[organizationId]));
          const keys = await organizations.listKeys(organizationId);
          // It is there where the database goes on with the rows of another.
          if (keys.some(({ keyId }) => keyId === key.split("_")[1])) return;
          await organizations.createKey(organizationId, { scopes, key });
        });
      }
      return organizations.authenticate(key);
    },
  };
}

/** Creates the local organization, and those that were asked for, which have their keys at once. */
export async function createLocalOrganizations(
  organizations: Organizations,
  options: {
    networks: readonly NetworkName[];
    recipient?: Address | undefined;
    organizations?: readonly LocalOrganization[] | undefined;
  },
): Promise<void> {
  const { networks, recipient = localOrganization.recipient, organizations: asked = [] } = options;
  const { id, name } = localOrganization;
  await organizations.create({ id, name });
  for (const network of networks) await organizations.setRecipient(id, network, recipient);
  for (const { id, name, apiKey, scopes, networks } of asked) {
    await organizations.create({ id, name });
    for (const [network, { recipient, ...limits }] of networks) {
      await organizations.setRecipient(id, network, recipient);
      await organizations.setLimits(id, network, limits);
    }
    await organizations.createKey(id, { scopes, key: apiKey });
  }
}
