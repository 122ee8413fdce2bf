import { describe, expect, test } from "vitest";
import { harnessAccounts } from "../../src/payer/accounts.ts";
import type { Hex } from "../../src/protocol/hex.ts";
import {
  actionsOf,
  channelRequirements,
  createChannelBuyer,
  readChannelState,
  signChannelPayment,
} from "./channels.ts";
import type { Composition } from "./composition.ts";
import type { Boundary } from "./crash/boundaries.ts";
import { backends, type TestDatabase, useTestDatabase } from "./databases.ts";
import type { Body } from "./service.ts";
import { startServiceProcess } from "./service-process.ts";

const kinds = ["deposit", "claim", "settle", "refund"] as const;

/**
 * Tests that kill the process at steps of a deposit, a claim, a payout and a refund. The next process must answer what
 * the chain shows, and tokens must move only once.
 */
export function testChannelDeaths(
  composition: Composition,
  steps: (isPostgres: boolean) => readonly Boundary[],
) {
  describe.each(backends)("on $name", (backend) => {
    const database = useTestDatabase(backend);
    test.each(steps(backend.name === "Postgres").flatMap((dieAt) => kinds.map((kind) => ({ kind, dieAt }))))(
      "$kind, killed when $dieAt",
      { timeout: 60_000 },
      ({ kind, dieAt }) => dieOnce(composition, database, kind, dieAt),
    );
  });
}

async function dieOnce(
  composition: Composition,
  database: TestDatabase,
  kind: (typeof kinds)[number],
  dieAt: Boundary,
) {
  const { chain } = composition;
  const { address: receiver } = harnessAccounts.recipient;
  const { address: receiverAuthorizer } = harnessAccounts.authorizer;
  const buyer = await createChannelBuyer(chain);
  const deposit = await signChannelPayment(
    buyer,
    channelRequirements(chain, { receiver, receiverAuthorizer }),
  );
  const actions = { deposit, ...actionsOf(chain, deposit) };
  const before: Record<typeof kind, readonly Body[]> = {
    deposit: [],
    claim: [deposit],
    settle: [deposit, actions.claim],
    refund: [deposit],
  };
  const prepared = await startServiceProcess(composition, database.url);
  for (const body of before[kind])
    expect((await prepared.settle(body)).body).toMatchObject({ success: true });
  const received = await composition.balanceOf(receiver);
  await prepared.stop();

  const first = await startServiceProcess(composition, database.url, { dieAt });
  const given = await first.settleAndDie(actions[kind]);
  const second = await startServiceProcess(composition, database.url);
  const { body: repeat } = await second.settleUntilDecided(actions[kind]);
  // Only after a delivery was recorded may the answer be anything but the success.
  const isDelivered = dieAt === "marked as delivered";
  expect(repeat).toMatchObject({ success: !isDelivered });
  if (isDelivered) expect(given?.body).toMatchObject({ success: true });
  else if (given !== undefined) {
    expect(repeat).toMatchObject({ transaction: Reflect.get(Object(given.body), "transaction") });
  }
  await second.stop();

  const { channelId } = deposit.paymentPayload.payload.voucher;
  const states = {
    deposit: [10_000n, 0n],
    claim: [10_000n, 700n],
    settle: [10_000n, 700n],
    refund: [700n, 700n],
  };
  expect(await readChannelState(chain, channelId as Hex)).toEqual(states[kind]);
  expect(await composition.balanceOf(buyer.account.address)).toBe(kind === "refund" ? 49_300n : 40_000n);
  expect((await composition.balanceOf(receiver)) > received).toBe(kind === "settle");
}
