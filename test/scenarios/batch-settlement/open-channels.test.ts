import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { createAuthorizers } from "../../../src/chain/signing/local-signer.ts";
import type { NetworkConfig } from "../../../src/config/serve-config.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import {
  actionsOf,
  channelRequirements,
  createChannelBuyer,
  readChannelState,
  signChannelPayment,
} from "../../support/channels.ts";
import type { Running } from "../../support/composition.ts";
import type { Body } from "../../support/service.ts";
import { useComposition } from "../../support/use-composition.ts";

/* Settings change while channels are open: what was charged on them can still be claimed, paid out and refunded. */

const composition = useComposition();

const newAddress = () => privateKeyToAccount(generatePrivateKey()).address;
const moveTo = (running: Running, recipient = newAddress()) =>
  running.service.organizations.setRecipient("org", "base", recipient);

const changes: readonly {
  name: string;
  after?: Partial<NetworkConfig>;
  act?: (running: Running) => Promise<unknown>;
  /** The answer to another deposit. */
  more: object;
}[] = [
  {
    name: "the organization is paid elsewhere",
    act: (running) => moveTo(running),
    more: { situation: "pay_to_not_accepted" },
  },
  {
    name: "plain receivers are not paid any more",
    after: { payTo: "contract" },
    more: { situation: "pay_to_not_accepted" },
  },
  {
    name: "the token is not allowed any more",
    after: { assets: [] },
    more: { situation: "asset_not_accepted" },
  },
  {
    name: "another authorizer is offered",
    after: createAuthorizers([generatePrivateKey(), harnessAccounts.authorizer.privateKey]),
    more: { success: true },
  },
];

test.each(changes)("$name", { timeout: 30_000 }, async ({ after, act, more: answer }) => {
  const { chain } = composition;
  const { address: receiver } = harnessAccounts.recipient;
  const { address: receiverAuthorizer } = harnessAccounts.authorizer;
  const terms = channelRequirements(chain, { receiver, receiverAuthorizer });
  const deposit = await signChannelPayment(await createChannelBuyer(chain), terms);
  const { claim, settle, refund } = actionsOf(chain, deposit);
  const post = async (running: Running, operation: "verify" | "settle", body: Body): Promise<Body> =>
    (await composition.post(running, operation, body)).body as Body;

  const first = await composition.start();
  expect(await post(first, "settle", deposit)).toMatchObject({ success: true });
  await composition.stop(first);
  const second = await composition.start({ network: composition.configuration(after) });
  await act?.(second);
  const { organizations } = second.service;
  await organizations.create({ id: "other", name: "Other" });
  await organizations.setRecipient("other", "base", newAddress());
  const { key } = await organizations.createKey("other", { scopes: ["settle"] });
  for (const action of [claim, settle, refund]) {
    expect(await post({ ...second, key }, "settle", action)).toMatchObject({ success: false });
  }

  expect(await post(second, "settle", claim)).toMatchObject({ success: true });
  expect(await post(second, "settle", settle)).toMatchObject({ success: true, amount: "700" });
  const { payload } = deposit.paymentPayload;
  const question = { ...deposit.paymentPayload, payload: { ...payload, type: "refund" } };
  expect(await post(second, "verify", { ...deposit, paymentPayload: question })).toMatchObject({
    isValid: true,
  });
  expect(await post(second, "settle", refund)).toMatchObject({ success: true, amount: "9300" });
  expect(await readChannelState(chain, payload.voucher.channelId)).toEqual([700n, 700n]);
  // New deposits follow the settings.
  const more = await signChannelPayment(await createChannelBuyer(chain), terms);
  expect(await post(second, "settle", more)).toMatchObject(answer);
});
