import { setTimeout as wait } from "node:timers/promises";
import { expect, test } from "vitest";
import { createBuyer, fundedAccount } from "../../support/buyer.ts";
import { startFleet } from "../../support/crash/fleet.ts";
import { sharedPostgres } from "../../support/databases.ts";
import { startMerchant } from "../../support/merchant.ts";
import { apiKey } from "../../support/service-process.ts";
import { noFindings, tally } from "../../support/tally.ts";
import { useComposition } from "../../support/use-composition.ts";
import { allWays, approvalFirstWay, firstWays, zeroWay } from "../../support/ways.ts";

/*
 * Instances are replaced one after the other while payments go on in every way, by SIGTERM and by kill -9 in turns, behind a proxy
 * that resets idle connections.
 */

const restarts = Number(process.env.ROLLING_RESTARTS ?? 2);
/** Buyers who pay one payment after the other. */
const buyers = 6;
const ways = [...allWays, ...firstWays, approvalFirstWay];

const composition = useComposition();

test(`${restarts} restarts behind a proxy: no payment is lost, paid twice or refused`, {
  timeout: 60_000 + restarts * 10_000,
}, async () => {
  const url = await (await sharedPostgres()).createDatabase();
  const fleet = await startFleet(composition, url, { size: 2 });
  let working = true;
  const paying = Array.from({ length: buyers }, async (_, buyer) => {
    for (let made = buyer; working; made++) await fleet.pay(ways[made % ways.length] ?? zeroWay);
  });
  for (let restart = 0; restart < restarts; restart++) {
    const isOrderly = (restart + Math.floor(restart / 2)) % 2 === 0;
    await fleet.replace(restart % 2, isOrderly ? "SIGTERM" : "SIGKILL");
    await wait(200);
  }
  working = false;
  fleet.troubleIsOver();
  await Promise.all(paying);
  const findings = await fleet.judge();
  await fleet.stop();
  tally(`rolling restarts behind a proxy, ${fleet.payments} payments, ${restarts} restarts`, findings);
  expect(findings).toEqual(noFindings);
  expect(fleet.payments).toBeGreaterThan(restarts);
});

test("behind the public resource server, a rolling restart by SIGTERM charges no buyer who is told 402", {
  timeout: 90_000,
}, async () => {
  const price = 10_000n;
  const { chain } = composition;
  const url = await (await sharedPostgres()).createDatabase();
  const fleet = await startFleet(composition, url, { size: 2 });
  const merchant = await startMerchant(
    { url: `${fleet.origin}/v1`, apiKey },
    { "/report": { network: chain.network.caip2, payTo: chain.facilitatorContract, price: "$0.01" } },
  );
  let working = true;
  const wrong: string[] = [];
  let served = 0;
  const shopping = Array.from({ length: 6 }, async () => {
    const account = await fundedAccount(chain, 1_000n * price);
    const buyer = createBuyer(account);
    while (working) {
      const before = await composition.balanceOf(account.address);
      const { status, refusal } = await buyer.buy(`${merchant.origin}/report`);
      const charged = before - (await composition.balanceOf(account.address));
      if (status === 200) served++;
      if (charged !== (status === 200 ? price : 0n)) wrong.push(`${status} ${refusal}: charged ${charged}`);
    }
  });
  for (const index of [0, 1]) await fleet.replace(index, "SIGTERM");
  working = false;
  await Promise.all(shopping);
  await merchant.close();
  await fleet.stop();
  expect(wrong).toEqual([]);
  expect(served).toBeGreaterThan(10);
});
