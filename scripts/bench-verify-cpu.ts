// CPU that one simulated settle costs this process, against a trivial node in another process, and what recovering
// a signer costs: the chain's share of a verify. Run: node scripts/bench-verify-cpu.ts
import { fork } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { createChain } from "../src/chain/create-chain.ts";
import { recoverSigner } from "../src/chain/recover.ts";
import { networks } from "../src/protocol/networks.ts";

const hash = `0x${"12".repeat(32)}` as const;

/** The answer of a busy chain: 150 transactions in the newest block. */
const block = {
  number: "0x1e8480",
  timestamp: "0x68000000",
  baseFeePerGas: "0x4c4b40",
  logsBloom: `0x${"0".repeat(512)}`,
  transactions: Array.from({ length: 150 }, () => hash),
};

if (process.argv.includes("--node")) {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const calls: { id: number; method: string }[] = JSON.parse(body);
    const results = calls.map(({ id, method }) => ({ id, result: method === "eth_call" ? "0x" : block }));
    response.setHeader("content-type", "application/json").end(JSON.stringify(results));
  });
  server.listen(0, "127.0.0.1", () => process.send?.(server.address()));
} else {
  const node = fork(import.meta.filename, ["--node"]);
  const [{ port }] = await once(node, "message");
  const call = {
    asset: networks.base.usdc.address,
    authorization: {
      from: networks.polygon.usdc.address,
      to: networks.optimism.usdc.address,
      value: 10_000n,
      validAfter: 0n,
      validBefore: 2n ** 40n,
      nonce: hash,
    },
    signature: `0x${"34".repeat(64)}1b`,
    recipient: networks.polygon.usdc.address,
  } as const;
  const chain = createChain({
    network: {
      ...networks.base,
      facilitatorContract: call.authorization.to,
      rpcUrls: [`http://127.0.0.1:${port}`],
      assets: [networks.base.usdc],
      confirmations: 1,
      maxFeePerGas: 1_000_000_000n,
    },
    operator: call.recipient,
  });

  const simulate = async (count: number, concurrency: number) => {
    let left = count;
    const one = async () => {
      while (left-- > 0) await chain.simulateSettle(call, { withFunds: false });
    };
    await Promise.all(Array.from({ length: concurrency }, one));
  };
  const count = 5_000;
  await simulate(count, 16);
  for (const concurrency of [1, 16, 64]) {
    const before = process.cpuUsage();
    await simulate(count, concurrency);
    const { user, system } = process.cpuUsage(before);
    const each = (user + system) / 1_000 / count;
    console.log(`simulateSettle, ${concurrency} at a time: ${each.toFixed(3)} ms of CPU each`);
  }
  for (let warmUp = 0; warmUp < count; warmUp++) recoverSigner(hash, call.signature);
  const start = performance.now();
  for (let run = 0; run < count; run++) recoverSigner(hash, call.signature);
  console.log(`recoverSigner: ${((performance.now() - start) / count).toFixed(3)} ms each`);
  node.kill();
}
