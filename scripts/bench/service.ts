/**
 * Measures verifies over few and many connections, then settles sent at once over new connections. All go to an `up` in
 * its own process with one operator key:
 *
 *   node scripts/bench/service.ts [SETTLES…]
 *
 * The rounds run one after the other on the same chain. Each reports how many requests succeeded, how fast, and the CPU
 * of the service; for settles also the payments per transaction and the number of blocks.
 */
import { createLocalRpc } from "../../src/chain/rpc/local-rpc.ts";
import { type Load, load } from "./load.ts";
import { ms } from "./markdown.ts";
import { signBodies, startUp } from "./up.ts";

/** How often one payment is sent at once. */
const repeats = 1_500;

const counts = process.argv.slice(2).map(Number);

const up = await startUp(["--json", "--no-demo", "--networks", "base", "--log-level", "error"]);
const { facilitator, organization, networks } = up.description;
const rpc = createLocalRpc(networks.base?.rpcUrl ?? "");

const verified = await signBodies(up.description, 200, 1);
for (const [connections, count] of [
  [1, 500],
  [1, 1_000],
  [16, 6_000],
  [64, 6_000],
] as const) {
  const bodies = Array.from({ length: count }, (_, index) => verified[index % verified.length] ?? "");
  console.log(`verify ${describe(await send("verify", bodies, connections), `${connections} at a time`)}`);
}

// A flood of one payment, each request over a new connection, while another payment is verified.
for (const operation of ["verify", "settle"] as const) {
  const [one = "", other = ""] = await signBodies(up.description, 2, 2);
  const flood = send(operation, Array(repeats).fill(one), repeats);
  const beside = await send("verify", [other], 1);
  await flood;
  console.log(`verify of one payment beside ${repeats} times ${operation} of another: ${ms(beside.p50)} ms`);
}

for (const count of counts.length > 0 ? counts : [20, 200, 1_000, 1_000, 1_000, 1_000, 1_000]) {
  const bodies = await signBodies(up.description, count, 1);
  const before = await countMined();
  const isLone = count <= 50;
  const settled = await send("settle", bodies, isLone ? 1 : count);
  const after = await countMined();
  const transactions = after.transactions - before.transactions;
  console.log(
    [
      `settle ${describe(settled, isLone ? "one after the other" : "at once")}`,
      `${(settled.good / transactions).toFixed(1)} in a transaction`,
      `${Math.round(((after.blocks - before.blocks) * 1_000) / count)} blocks for 1,000`,
    ].join(", "),
  );
}
await up.stop();

function send(operation: "verify" | "settle", bodies: readonly string[], connections: number): Promise<Load> {
  return load({
    url: `${facilitator.url}/${operation}`,
    headers: { authorization: organization.apiKey },
    bodies,
    connections,
    expect: operation === "verify" ? '"isValid":true' : '"success":true',
    pid: up.pid,
  });
}

function describe({ count, good, perSecond, p50, p99, cpu }: Load, how: string): string {
  return [
    `${count} ${how}: ${good} succeeded`,
    `${Math.round(perSecond)}/s`,
    `median ${ms(p50)} ms, p99 ${ms(p99)} ms`,
    `${cpu?.toFixed(3) ?? "unknown"} ms of CPU each`,
  ].join(", ");
}

/** The blocks on the chain and the operator's transactions so far. */
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
