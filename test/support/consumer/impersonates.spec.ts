import { expect } from "vitest";
import { createTest } from "../../../src/harness/vitest/index.ts";

const test = createTest(["base"]);
const account = "0x00000000000000000000000000000000000000c2";

// The first run impersonates an account, the second expects that none is impersonated.
test.for([1, 2])("impersonation ends with its test: %i", async (_, { harness }) => {
  const { client } = harness.networks.base;
  const send = () => client.sendTransaction({ account, to: account });
  await expect(send()).rejects.toThrow("No Signer available");
  await client.setBalance({ address: account, value: 10n ** 18n });
  await client.impersonateAccount({ address: account });
  await send();
});
