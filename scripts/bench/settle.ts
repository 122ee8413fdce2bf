import { requestJson } from "../../src/harness/control/http-json.ts";
import { startHarness } from "../../src/harness/run/start-harness.ts";
import { resolveFacilitatorContracts } from "../../src/harness/stage/addresses.ts";
import { createLogger } from "../../src/logging/logger.ts";
import { buildPaymentRequest } from "../../src/protocol/build-request.ts";
import { localOrganization } from "../../src/published/local-organization.ts";
import { signAs } from "../../src/published/sign-as.ts";

const counts = process.argv.slice(2).map(Number);

for (const count of counts.length > 0 ? counts : [200, 2_000]) {
  const harness = await startHarness({
    networks: ["base"],
    facilitatorContracts: resolveFacilitatorContracts(),
    host: "127.0.0.1",
    port: 0,
    logger: createLogger("warn"),
  });
  const chain = harness.chains.base;
  if (chain === undefined) throw new Error("base is not running");
  const now = await chain.now();
  const bodies = await Promise.all(
    Array.from({ length: count }, async () =>
      buildPaymentRequest({
        x402Version: 1,
        network: chain.network,
        asset: chain.asset,
        payTo: chain.facilitatorContract,
        amount: 1n,
        resource: "https://merchant.example/resource",
        ...(await signAs("funded", {
          asset: chain.asset,
          chainId: chain.network.chainId,
          to: chain.facilitatorContract,
          value: 1n,
          validBefore: now + 600n,
        })),
      }),
    ),
  );
  const headers = { authorization: localOrganization.apiKey };
  const url = `${harness.description.facilitator.url}/settle`;
  const from = performance.now();
  const answers = await Promise.all(
    bodies.map((body) =>
      requestJson(url, { method: "POST", headers, body }).catch((error: unknown) => ({
        status: 0,
        body: String(error),
      })),
    ),
  );
  const seconds = (performance.now() - from) / 1000;
  const succeeded = answers.filter(({ body }) => JSON.stringify(body).includes('"success":true')).length;
  const others = new Map<string, number>();
  for (const { status, body } of answers) {
    const text = `${status} ${JSON.stringify(body).slice(0, 300)}`;
    if (!text.includes('"success":true')) others.set(text, (others.get(text) ?? 0) + 1);
  }
  const block = await chain.node.request(
    "eth_getTransactionCount",
    "0x750bAd95cdbC92De8024b090caE68D6202FE5b74",
    "latest",
  );
  console.log(
    `${count} settles at once, one operator key: ${succeeded} succeeded in ${seconds.toFixed(2)} s (${Math.round(count / seconds)}/s), in ${Number(block)} transactions`,
  );
  for (const [text, times] of [...others].slice(0, 5)) console.log(`  ${times} × ${text}`);
  await harness.close();
}
