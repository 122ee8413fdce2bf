import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { HarnessChain } from "../../../src/harness/setup/prepare-chain.ts";
import { sameAddress } from "../../../src/protocol/hex.ts";
import { requestJson } from "../../../src/util/http-client.ts";
import { leaveSharedPostgres, sharedPostgres } from "../../support/databases.ts";
import { openMigrated } from "../../support/open-migrated.ts";
import { type RunningCommand, startCommand } from "../../support/serve/command.ts";
import { type DeployedChains, operator } from "../../support/serve/deployed-chains.ts";
import { createShop, signPayment, startDeployedShop } from "../../support/serve/shop.ts";
import { transfersSince } from "../../support/transfers.ts";

/*
 * Three instances on one Postgres: the clock of one is right, of one a minute ahead, and of one 20 seconds behind.
 */

const clocksMs = [0, 60_000, -20_000];

let deployed: DeployedChains<"base">;
let chain: HarnessChain;
let commands: readonly RunningCommand[] = [];
let urls: readonly string[];
let key: string;
beforeAll(async () => {
  ({ deployed, chain } = await startDeployedShop());
  const database = await (await sharedPostgres()).createDatabase();
  await (await openMigrated(database)).destroy();
  key = await createShop(database);
  commands = clocksMs.map((byMs) => {
    const shift = `const now = Date.now; Date.now = () => now() + ${byMs};`;
    return startCommand(
      ["serve"],
      {
        ...deployed.variables,
        DATABASE_URL: database,
        CONFIRMATIONS: "base=1",
        NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(shift)}`,
      },
      "/",
    );
  });
  const lines = await Promise.all(commands.map((command) => command.logged(/"serving"/)));
  urls = lines.map((line) => JSON.parse(line).url);
});
afterAll(async () => {
  for (const command of commands) await command[Symbol.asyncDispose]();
  await deployed?.stop();
  await leaveSharedPostgres();
});

const settle = (url: string, body: object) =>
  requestJson(`${url}/settle`, { method: "POST", headers: { authorization: key }, body });

/** Waits until a transaction of the operator is sent that is not mined. */
async function untilPending(): Promise<void> {
  const count = (block: string) => chain.node.request("eth_getTransactionCount", operator, block);
  await expect.poll(async () => (await count("pending")) !== (await count("latest"))).toBe(true);
}

test("a payment that is settled at one and repeated at all gives one success and one transfer", async () => {
  const [right = ""] = urls;
  const since = await chain.node.request("eth_blockNumber");
  const bodies = await Promise.all(Array.from({ length: 60 }, () => signPayment(deployed)));
  await chain.hold();
  const first = bodies.map((body) => settle(right, body));
  await untilPending();
  await chain.release();
  // The repeats of each payment come at another moment around its outcome and its answer.
  const repeats = bodies.flatMap((body, index) =>
    urls.map(async (url) => {
      await sleep(index * 20);
      return settle(url, body);
    }),
  );
  const during = await Promise.all([...first, ...repeats]);
  const after = await Promise.all(bodies.flatMap((body) => urls.map((url) => settle(url, body))));

  const paid = [...during, ...after].flatMap(({ body }) =>
    typeof body === "object" && body !== null && Reflect.get(body, "success") === true ? [body] : [],
  );
  expect(paid).toHaveLength(bodies.length);
  const transfers = await transfersSince(chain, Number(since) + 1);
  expect(transfers.filter(({ to }) => sameAddress(to, deployed.contract))).toHaveLength(bodies.length);
});

test("readiness says whose clock is not the database's", async () => {
  const details = await Promise.all(
    urls.map(async (url) => (await requestJson(url.replace("/v1", "/readyz"))).body),
  );
  const clock = (text: string) => ({ networks: { base: { detail: expect.stringContaining(text) } } });
  expect(details[0]).not.toMatchObject(clock("clock"));
  expect(details[1]).toMatchObject(clock("60 s ahead"));
});
