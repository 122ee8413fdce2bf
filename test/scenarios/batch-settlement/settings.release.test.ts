import { setTimeout as wait } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { requestJson } from "../../../src/util/http-client.ts";
import { createChannelTraffic } from "../../support/crash/channel-traffic.ts";
import { backends, useTestDatabase } from "../../support/databases.ts";
import { accountOf, keyOf } from "../../support/key-accounts.ts";
import { createRandom } from "../../support/random.ts";
import { type RunningCommand, startCommand } from "../../support/serve/command.ts";
import { type DeployedChains, startDeployedChains } from "../../support/serve/deployed-chains.ts";
import { createShop } from "../../support/serve/shop.ts";
import { noFindings, tally } from "../../support/tally.ts";

/*
 * Two processes of `serve` on one database, while shops sell on channels: each is killed again and again, and started with other
 * settings than it had, and than the other one has.
 */

const seconds = Number(process.env.SETTINGS_SECONDS ?? 60);

const settings: Readonly<Record<string, readonly [string, ...string[]]>> = {
  CONFIRMATIONS: ["base=1", "base=2"],
  PAY_TO: ["any", "recipients"],
  SETTLE_WAIT_MS: ["100", "1000", "20000"],
  DAILY_GAS_BUDGET: ["base=none", "base=1"],
  MAX_FEE_GWEI: ["base=5", "base=50"],
  ANONYMOUS_VERIFY: ["true", "false"],
  GAS_SPONSORING: ["", "eip2612GasSponsoring"],
  BUILDER_CODE: ["", "bc_shop"],
};

describe.each(backends)("on $name", (backend) => {
  const database = useTestDatabase(backend);
  let deployed: DeployedChains<"base">;
  beforeAll(async () => {
    deployed = await startDeployedChains(["base"]);
  });
  afterAll(() => deployed?.stop());

  const name = "no voucher is lost and none is claimed twice";
  test(name, { timeout: (seconds + 180) * 1_000 }, () => sellUnderKills(deployed, database.url));
});

async function sellUnderKills({ chains, variables }: DeployedChains<"base">, databaseUrl: string) {
  const { base: chain } = chains;
  const key = await createShop(databaseUrl);
  const random = createRandom();
  const instances: { command: RunningCommand; url: string }[] = [];
  async function start(index: number) {
    const chosen: Record<string, string> = {};
    for (const [name, values] of Object.entries(settings)) {
      const value = random.pick(values);
      if (value !== "") chosen[name] = value;
    }
    // New channels need an instance that takes them.
    if (index === 0 && random.between(0, 1) === 0) chosen.PAY_TO = "contract";
    const fixed = { ...variables, DATABASE_URL: databaseUrl, AUTHORIZER_PRIVATE_KEY: keyOf("authorizer") };
    const command = startCommand(["serve"], { ...fixed, ...chosen }, "/");
    const { url } = JSON.parse(await command.logged(/"serving"/));
    return { command, url: String(url) };
  }
  for (let index = 0; index < 2; index++) instances.push(await start(index));
  const traffic = await createChannelTraffic(
    chain,
    async (operation, body) => {
      const { url } = random.pick([instances[0], instances[1]]) ?? {};
      const request = { method: "POST", headers: { authorization: key }, body, agent: false } as const;
      return requestJson(`${url}/${operation}`, request).catch(() => undefined);
    },
    { buyers: 60, random, receiverAuthorizer: accountOf("authorizer").address },
  );
  await chain.node.request("evm_setAutomine", false);
  let isOver = false;
  const mining = (async () => {
    while (!isOver) {
      await wait(300);
      await chain.node.request("evm_mine");
    }
  })();
  const until = performance.now() + seconds * 1_000;
  const isTroubled = () => performance.now() < until;
  const killing = (async () => {
    for (let index = 0; isTroubled(); index = 1 - index) {
      await wait(random.between(500, 2_500));
      await instances[index]?.command[Symbol.asyncDispose]();
      instances[index] = await start(index);
    }
  })();
  const sellers = Array.from({ length: 6 }, async () => {
    while (isTroubled()) await traffic.sell();
  });
  try {
    await Promise.all([killing, ...sellers]);
    const findings = await traffic.finish();
    tally("settings of channels", findings);
    expect(findings, `TEST_SEED=${random.seed}, ${traffic.channels} channels`).toEqual(noFindings);
    expect(traffic.channels).toBeGreaterThan(10);
  } finally {
    isOver = true;
    await mining;
    for (const { command } of instances) await command[Symbol.asyncDispose]();
  }
}
