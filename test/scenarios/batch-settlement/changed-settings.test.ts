import { generatePrivateKey } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { createAuthorizers } from "../../../src/chain/signing/local-signer.ts";
import type { NetworkConfig } from "../../../src/config/serve-config.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { networks } from "../../../src/protocol/networks.ts";
import {
  actionsOf,
  channelRequirements,
  createChannelBuyer,
  signChannelPayment,
} from "../../support/channels.ts";
import type { Running } from "../../support/composition.ts";
import type { Body } from "../../support/service.ts";
import { useComposition } from "../../support/use-composition.ts";

/* Settings change while what was asked for on a channel is done, and its success not handed over. */

const composition = useComposition();

const kinds = ["deposit", "claim", "settle", "refund"] as const;

const changes: readonly { name: string; after: () => Partial<NetworkConfig>; stops?: true }[] = [
  {
    name: "the facilitator signs no more",
    after: () => ({ receiverAuthorizer: undefined, authorizers: [] }) as object,
  },
  { name: "it signs with another key", after: () => createAuthorizers([generatePrivateKey()]) },
  { name: "plain receivers are not paid any more", after: () => ({ payTo: "contract" }) },
  { name: "the token is not allowed any more", after: () => ({ assets: [] }) },
  {
    name: "the network is not served any more",
    after: () => ({ ...networks.optimism, rpcUrls: ["http://127.0.0.1:9"] }),
    stops: true,
  },
];

describe.each(changes)("$name", ({ after, stops = false }) => {
  test.each(kinds)("a %s has its one success", { timeout: 30_000 }, async (kind) => {
    const { chain } = composition;
    const { address: receiver } = harnessAccounts.recipient;
    const { address: receiverAuthorizer } = harnessAccounts.authorizer;
    const terms = channelRequirements(chain, { receiver, receiverAuthorizer });
    const deposit = await signChannelPayment(await createChannelBuyer(chain), terms);
    const actions = { deposit, ...actionsOf(chain, deposit) };
    const before: Record<typeof kind, readonly Body[]> = {
      deposit: [],
      claim: [deposit],
      settle: [deposit, actions.claim],
      refund: [deposit],
    };
    const start = (changed?: Partial<NetworkConfig>) =>
      composition.start({ network: composition.configuration(changed), settleWaitMs: 300 });
    const settle = (running: Running, body: Body) => composition.post(running, "settle", body);
    const untilSettled = (running: Running, body: Body) =>
      expect.poll(async () => (await settle(running, body)).body).toMatchObject({ success: true });

    const first = await start();
    for (const body of before[kind]) await untilSettled(first, body);
    const release = await composition.holdMining();
    expect((await settle(first, actions[kind])).status).toBe(503);
    const mined = await composition.operatorTransactions();
    await release();
    await expect.poll(() => composition.operatorTransactions()).toBe(mined + 1);
    await composition.stop(first);

    const second = await start(after());
    if (stops) expect((await settle(second, actions[kind])).status).toBe(503);
    else await untilSettled(second, actions[kind]);
    const sent = await composition.operatorTransactions();
    await composition.stop(second);
    const third = await start();
    if (stops) await untilSettled(third, actions[kind]);
    expect((await settle(third, actions[kind])).body).toMatchObject({ success: false });
    expect(await composition.operatorTransactions()).toBe(sent);
  });
});
