import { once } from "node:events";
import { createServer } from "node:http";
import { createHarness } from "../../src/harness/index.ts";
import { sendHttp } from "../../src/util/http-client.ts";
import { median } from "./load.ts";
import { describeMachine, markdownTable, ms } from "./markdown.ts";

/* Compares requests to a shop, directly and through the recording proxy, taking turns. The goal is at most 2 ms more. */

const requests = 1_000;

const shop = createServer((_, response) => response.end("{}")).listen(0, "127.0.0.1");
await once(shop, "listening");
const address = shop.address();
if (typeof address !== "object" || address === null) throw new Error("the shop does not listen");
const direct = `http://127.0.0.1:${address.port}`;
await using harness = await createHarness({ networks: ["base"], shop: direct });

const times: { direct: number[]; proxied: number[] } = { direct: [], proxied: [] };
for (let round = 0; round < requests; round++) {
  times.direct.push(await timeOf(direct));
  times.proxied.push(await timeOf(harness.shop?.url ?? ""));
}
const [own, proxied] = [median(times.direct), median(times.proxied)];
const row = {
  "median, ms": "a request to a shop",
  direct: ms(own),
  proxied: ms(proxied),
  more: ms(proxied - own),
};
console.log(`${describeMachine()}\n\n${markdownTable([row])}`);
shop.close();

async function timeOf(url: string): Promise<number> {
  const from = performance.now();
  await sendHttp(`${url}/page`);
  return performance.now() - from;
}
