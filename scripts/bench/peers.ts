/**
 * Compares starts and resets with bare nodes, then this service with the public reference facilitator, taking turns:
 * verifies over 50 connections, and settles sent at once, with one operator key each, on nodes of the same kind. The
 * service runs as in production (`serve`) and within `up`. Every figure is the median of the rounds. See
 * docs/benchmarks.md.
 *
 * node scripts/bench/peers.ts [ROUNDS [SETTLES]] [--write]
 */
import { startReferenceFacilitator } from "../../test/support/conformance/reference-facilitator.ts";
import { descendantsOf } from "../../test/support/processes.ts";
import { startBareChain } from "./bare-chain.ts";
import { signDeposits, signPurchases } from "./channels.ts";
import { cpuMs, type Load, load, median } from "./load.ts";
import { createReport, markdownTable, ms, sizesGiven } from "./markdown.ts";
import { startServe } from "./serve.ts";
import { measureStarts } from "./starts.ts";
import { type PaidBy, type SigningTerms, signBodies, startUp } from "./up.ts";

const [rounds = 3, settles = 2_000] = sizesGiven();

/** A measured facilitator in its own process, and its node. */
type Side = {
  url: string;
  pid: number;
  headers: Record<string, string>;
  terms: SigningTerms;
  /** The processes of the node. */
  node: readonly number[];
  stop(): Promise<void>;
};
type Row = { what: string; side: string; nodeCpu: number } & Load;

/** How each side starts, and how many verifies to measure: as many as take a few seconds. */
const sides = {
  "this, serve": { start: startServing, verifies: 20_000 },
  "this, up": { start: startUpSide, verifies: 20_000 },
  reference: { start: startReference, verifies: 1_500 },
} as const;

type Route = "through the contract" | "straight";

/** The payment methods, each with this service's routes that the main figures leave out; the reference has one route. */
const ways: readonly { way: string; routes: readonly Route[]; paid: PaidBy }[] = [
  { way: "EIP-3009", routes: ["straight"], paid: {} },
  { way: "Permit2", routes: ["through the contract", "straight"], paid: { method: "permit2" } },
  { way: "upto", routes: ["through the contract", "straight"], paid: { scheme: "upto", max: 2n } },
];

/**
 * Payments that the reference does not accept, made by test payers of `up`. They are only verified, since a payer's
 * first settle deploys its wallet or approves.
 */
const ownWays: Readonly<Record<string, PaidBy>> = {
  "wallet that its payment deploys (ERC-6492)": { payer: "undeployedWallet" },
  "Permit2, approved by a sponsored transaction": {
    payer: "sponsored",
    asset: "plain",
    method: "permit2",
    approval: "transaction",
  },
};

/** A wallet with a balance, as a merchant's has. */
const merchant = "0x00000000000000000000000000000000c0ffee03";

/** The other payments to measure for a side, by method and route. */
function othersOf(name: keyof typeof sides): readonly { what: string; how: PaidBy }[] {
  if (name === "this, up") return [];
  return ways.flatMap(({ way, routes, paid }) =>
    (name === "reference" ? (["straight"] as const) : routes).map((route) => ({
      what: `${way}, ${route}`,
      how: { ...paid, ...(route === "straight" && { payTo: merchant }) },
    })),
  );
}

/** The number of distinct payments to verify in turn: more than the service remembers the signers of. */
const different = 5_000;

/** Settles that are sent one at a time; as many before them are not counted. */
const lone = 100;

const report = createReport("peers");
// First, while this process, which starts the others, is small and has no garbage to collect.
const starts = await measureStarts();
const rows: Row[] = [];
for (let round = 0; round < rounds; round++) {
  const names = Object.keys(sides) as (keyof typeof sides)[];
  // The sides take turns in going first, so that the order favors none of them.
  for (const name of [...names.slice(round % names.length), ...names.slice(0, round % names.length)]) {
    const { start, verifies } = sides[name];
    const side = await start();
    const signed = await signBodies(side.terms, different, 2);
    const cycle = (count: number) =>
      Array.from({ length: count }, (_, index) => signed[index % different] ?? "");
    // The same number first, uncounted: a new process spends much of its CPU on compilation.
    await measure(side, "verify", cycle(verifies), 50);
    const add = async (
      what: string,
      ...args: [operation: "verify" | "settle", string[], connections: number]
    ) => rows.push({ what, side: name, ...(await measure(side, ...args)) });
    await add("verify, 50 connections", "verify", cycle(verifies), 50);
    for (const [way, paid] of name === "this, up" ? Object.entries(ownWays) : []) {
      const bodies = await signBodies(side.terms, verifies / 8, 2, paid);
      await add(`${way}: verify, 50 connections`, "verify", bodies, 50);
    }
    const others = othersOf(name);
    for (const { what, how } of others) {
      // With scheme "upto", verify checks the maximum.
      const verified = how.max === undefined ? how : { ...how, max: 1n };
      const bodies = await signBodies(side.terms, verifies / 4, 2, verified);
      await add(`${what}: verify, 50 connections`, "verify", bodies, 50);
    }
    // Few at a time first: the more payments a node's state holds, the longer each block takes.
    await measure(side, "settle", await signBodies(side.terms, lone, 2), 1);
    await add("settle, one at a time", "settle", await signBodies(side.terms, lone, 2), 1);
    for (const { what, how } of others) {
      await add(`${what}: settle, one at a time`, "settle", await signBodies(side.terms, lone, 2, how), 1);
    }
    await add("settle, 200 at once", "settle", await signBodies(side.terms, 200, 2), 200);
    for (const { what, how } of others) {
      await add(`${what}: settle, 200 at once`, "settle", await signBodies(side.terms, 200, 2, how), 200);
    }
    // The same number first, as with verifies.
    await measure(side, "settle", await signBodies(side.terms, settles, 2), settles);
    await add(`settle, ${settles} at once`, "settle", await signBodies(side.terms, settles, 2), settles);
    if (name !== "this, up") {
      const { deposit, vouchers } = await signPurchases(side.terms, merchant, verifies / 4);
      await measure(side, "settle", [deposit], 1);
      await add("batch-settlement: verify of a voucher, 50 connections", "verify", vouchers, 50);
      const deposits = (count: number) => signDeposits(side.terms, merchant, count);
      await add("batch-settlement: deposit, one at a time", "settle", await deposits(lone), 1);
      await add("batch-settlement: deposit, 200 at once", "settle", await deposits(200), 200);
    }
    await side.stop();
  }
}

report.add(
  `### Verify and settle\n\n${markdownTable(
    [...Map.groupBy(rows, ({ what, side }) => `${what}|${side}`).values()].map((some) => {
      const pick = (read: (row: Row) => number) => median(some.map(read));
      const [first] = some;
      return {
        what: first?.what ?? "",
        facilitator: first?.side ?? "",
        succeeded: `${pick(({ good }) => good)} of ${first?.count}`,
        "per second": Math.round(pick(({ perSecond }) => perSecond)),
        "p50 ms": ms(pick(({ p50 }) => p50)),
        "p99 ms": ms(pick(({ p99 }) => p99)),
        "CPU ms each": pick(({ cpu = Number.NaN }) => cpu).toFixed(2),
        "node CPU ms each": pick(({ nodeCpu }) => nodeCpu).toFixed(2),
      };
    }),
  )}`,
);
report.add(`### Starts and resets\n\n${markdownTable(starts)}`);
report.end();

async function measure(
  side: Side,
  operation: "verify" | "settle",
  bodies: readonly string[],
  connections: number,
): Promise<Load & { nodeCpu: number }> {
  const before = nodeCpuOf(side);
  const result = await load({
    ...side,
    url: `${side.url}/${operation}`,
    bodies,
    connections,
    expect: operation === "verify" ? '"isValid":true' : '"success":true',
  });
  return { ...result, nodeCpu: (nodeCpuOf(side) - before) / bodies.length };
}

function nodeCpuOf({ node }: Side): number {
  return node.reduce((sum, pid) => sum + (cpuMs(pid) ?? Number.NaN), 0);
}

/** `serve`, which calls its node directly. */
async function startServing(): Promise<Side> {
  const bare = await startBareChain();
  const { stop, ...serve } = await startServe(bare.variables);
  return {
    ...serve,
    headers: { authorization: bare.apiKey },
    terms: bare,
    node: [bare.nodePid],
    async stop() {
      await stop();
      await bare.stop();
    },
  };
}

/** `up`, whose service calls its node through a relay in the same process; that process also keeps journals and the studio. */
async function startUpSide(): Promise<Side> {
  const { description, pid, stop } = await startUp(["--json", "--no-demo", "--networks", "base"]);
  const { facilitator, organization } = description;
  return {
    url: facilitator.url,
    pid,
    headers: { authorization: organization.apiKey },
    terms: description,
    node: descendantsOf(pid),
    stop,
  };
}

/** The reference facilitator, on a node like that of `serve`. */
async function startReference(): Promise<Side> {
  const bare = await startBareChain();
  const { base } = bare.networks;
  const { origin, pid, address, close } = await startReferenceFacilitator({ ...bare, ...base });
  return {
    url: `${origin}/v1`,
    pid,
    headers: {},
    // Payments by scheme "upto" name its key, which alone may submit them.
    terms: { networks: { base: { ...base, facilitatorContract: address } } },
    node: [bare.nodePid],
    async stop() {
      await close();
      await bare.stop();
    },
  };
}
