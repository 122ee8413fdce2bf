/** The pepper of the facilitator that the program works for. */
export const pepper = "5e0f4c9ab71d38e26c5f90b3a8d4e712";

/** A user's program that administers organizations. Its argument is the database's URL. */
export const organizationsProgram = `
import { type KeyRecord, KitError, openOrganizations, type Organization } from "x402-facilitator-kit/organizations";

const [, , databaseUrl = ""] = process.argv;
const open = () => openOrganizations({ databaseUrl, pepper: ${JSON.stringify(pepper)}, actor: "sign-up" });
try {
  const organizations = await open();
  const shop: Organization = await organizations.create({ name: "Their shop" });
  await organizations.setRecipient(shop.id, "base", "0x857b06519E91e3A54538791bDbb0E22373e36b66");
  await organizations.setLimits(shop.id, "base", { minimumAmount: 10_000n });
  const { key } = await organizations.createKey(shop.id, { scopes: ["verify", "settle"] });
  const keys: readonly KeyRecord[] = await organizations.listKeys(shop.id);
  const changes = await organizations.listChanges(shop.id);
  await organizations.close();
  console.log(JSON.stringify({ id: shop.id, key, keys: keys.length, actors: changes.map(({ actor }) => actor) }));
} catch (error) {
  if (!(error instanceof KitError)) throw error;
  console.log(JSON.stringify({ message: error.message, hints: error.hints }));
}
`;
