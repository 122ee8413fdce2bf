/**
 * Settles sent at once, over new connections, to an `up` in a process of its own with one operator key:
 *
 *   node scripts/bench/settle.ts [COUNT…]
 *
 * One round after the other on the same chain. Of each: how many succeeded and how fast, the CPU of the service, how many
 * payments shared a transaction, and how many blocks there were.
 */
import { createLocalRpc } from "../../src/rpc/local-rpc.ts";
import { load } from "./load.ts";
import { signBodies, startUp } from "./up.ts";

const counts = process.argv.slice(2).map(Number);

const up = await startUp(["--json", "--no-demo", "--networks", "base"]);
const { facilitator, organization, networks } = up.description;
const rpc = createLocalRpc(networks.base?.rpcUrl ?? "");

for (const count of counts.length > 0 ? counts : [20, 200, 1_000, 1_000, 1_000, 1_000, 1_000]) {
  const bodies = await signBodies(up.description, count, 1);
  const before = await countMined();
  const isLone = count <= 50;
  const { good, perSecond, p50, p99, cpu } = await load({
    url: `${facilitator.url}/settle`,
    headers: { authorization: organization.apiKey },
    bodies,
    connections: isLone ? 1 : count,
    expect: '"success":true',
    pid: up.pid,
  });
  const after = await countMined();
  const transactions = after.transactions - before.transactions;
  console.log(
    [
      `${count} ${isLone ? "one after the other" : "at once"}: ${good} succeeded`,
      `${Math.round(perSecond)}/s`,
      `median ${p50.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms`,
      `${cpu?.toFixed(2) ?? "unknown"} ms of CPU each`,
      `${(good / transactions).toFixed(1)} in a transaction`,
      `${Math.round(((after.blocks - before.blocks) * 1_000) / count)} blocks for 1,000`,
    ].join(", "),
  );
}
await up.stop();

/** Blocks of the chain, and transactions of the operator, so far. */
async function countMined(): Promise<{ transactions: number; blocks: number }> {
  const response = await fetch(`${facilitator.url}/supported`);
  const { signers } = Object(await response.json());
  const [operator] = Object.values(Object(signers)).flat();
  const [blocks, transactions] = await rpc.batch([
    ["eth_blockNumber"],
    ["eth_getTransactionCount", operator, "latest"],
  ]);
  return { blocks: Number(blocks), transactions: Number(transactions) };
}
