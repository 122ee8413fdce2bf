import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createFaultProxy, createFaults } from "../../../src/harness/faults/create-faults.ts";
import { createFaultSetters, type Faults } from "../../../src/harness/faults/faults.ts";
import type { HarnessChain } from "../../../src/harness/setup/prepare-chain.ts";
import { migrate, openDatabase } from "../../../src/ledger/database/open-database.ts";
import { create2Deployer } from "../../../src/protocol/create2.ts";
import type { Address } from "../../../src/protocol/hex.ts";
import { createOrganizations } from "../../../src/service/organizations/create-organizations.ts";
import { startWatchdog } from "../../../src/util/watchdog.ts";
import { accountOf, keyOf } from "../key-accounts.ts";
import { findFreePort } from "../postgres.ts";
import { type Fate, startPostgresProxy } from "../postgres-proxy.ts";
import { runHere } from "../run-here.ts";
import { operator as firstOperator, pepper, startDeployedChains } from "../serve/deployed-chains.ts";
import { type Transfer, transfersSince } from "../transfers.ts";
import { type Blocks, startBlocks } from "./blocks.ts";
import { type OperatorDatabase, startOperatorDatabase } from "./database.ts";
import { startFront } from "./front.ts";
import { type Instances, startInstances } from "./instances.ts";
import { type Customer, fundPayers, type NewPayer } from "./payments.ts";

const instanceCount = 3;
const secondOperator = "second operator";
const customerNames = ["shop", "school", "station"] as const;

/** Everything that an operator runs, and the parts of it that can be in trouble. */
export type OperatorStage = {
  /** The balancer's origin, which callers use. */
  origin: string;
  chain: HarnessChain;
  contract: Address;
  customers: readonly [Customer, ...Customer[]];
  newPayers: NewPayer[];
  instances: Instances;
  database: OperatorDatabase;
  /** The fate of each instance's statements on their way to the pooler. */
  links: readonly { fate: Fate }[];
  /** The two endpoints. Faults of the chain affect both; `first` can take the gas money of one key, `second` of all. */
  endpoints: { first: Faults<"base">; second: Faults<"base"> };
  blocks: Blocks;
  /** The transactions in blocks that were replaced, so that another one may have to pay. */
  replaced: Set<string>;
  /** The programs in use, for people. */
  programs: string;
  /** All transfers of the token since a block, on the current chain. */
  transfersSince(block: number): Promise<Transfer[]>;
  stop(): Promise<void>;
};

/**
 * Starts three instances of `serve` behind a balancer, on Postgres behind a pooler, with two RPC endpoints and two
 * operator keys. All of it ends with this process, however that ends.
 *
 * @param installed true to use HAProxy, PgBouncer and Postgres from this machine, if it has them
 */
export async function startOperatorStage({
  installed,
  blockMs,
}: {
  installed: boolean;
  blockMs: number;
}): Promise<OperatorStage> {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "x402-kit-operator-"));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const watchdog = startWatchdog();
  stack.defer(() => watchdog.close());

  const database = await startOperatorDatabase(folder, watchdog, installed);
  stack.defer(() => database.stop());
  const links: { fate: Fate }[] = [];
  const urls: string[] = [];
  for (let index = 0; index < instanceCount; index++) {
    const link: { fate: Fate } = { fate: "pass" };
    const proxy = await startPostgresProxy(database.pooler.url, () => link.fate);
    stack.defer(() => proxy.close());
    links.push(link);
    urls.push(proxy.url);
  }

  const deployed = await startDeployedChains(["base"]);
  stack.defer(() => deployed.stop());
  const { contract } = deployed;
  const chain = deployed.chains.base;
  const operators = [firstOperator, accountOf(secondOperator).address] as const;
  await chain.setBalance(operators[1], 100n * 10n ** 18n);
  const granting = ["deploy", "--network", "base", "--contract", contract, "--grant-operator", operators[1]];
  const granted = await runHere([...granting, "--yes"], {
    ...deployed.variables,
    DEPLOYER_PRIVATE_KEY: keyOf("deployer"),
  });
  if (granted.code !== 0) throw new Error(granted.stderr);
  const newPayers = await fundPayers(chain);
  const customers = await createCustomers(database.url);

  const setters = await Promise.all(
    [[operators[0]], operators].map(async (ofFault) => {
      const proxy = await createFaultProxy({ target: chain.rpcUrl });
      stack.defer(() => proxy[Symbol.asyncDispose]());
      const networks = { base: { chain, proxy } };
      const faults = createFaultSetters<"base">(
        createFaults({ serviceId: "operator", networks, operators: ofFault }),
      );
      return { faults, url: proxy.url };
    }),
  );
  const [first, second] = setters;
  if (first === undefined || second === undefined) throw new Error("there are no endpoints");
  const blocks = await startBlocks(chain, blockMs);
  stack.defer(() => blocks.stop());

  const ports = await Promise.all(urls.map(() => findFreePort()));
  const variables = urls.map((url, index) => ({
    ...deployed.variables,
    BASE_RPC_URL: `${first.url},${second.url}`,
    OPERATOR_PRIVATE_KEY: [deployed.variables.OPERATOR_PRIVATE_KEY, keyOf(secondOperator)].join(),
    DATABASE_URL: url,
    // The local chain has higher gas costs than live ones, and thousands of payments are made.
    DAILY_GAS_BUDGET: "base=none",
    PAY_TO: "recipients",
    GAS_SPONSORING: "eip2612GasSponsoring",
    WALLET_FACTORIES: create2Deployer,
    PORT: String(ports[index]),
    LOG_LEVEL: "error",
  }));
  const instances = await startInstances(variables, watchdog);
  stack.defer(() => instances.stop());
  const front = await startFront(folder, watchdog, { installed, ports });
  stack.defer(() => front.stop());
  const running = stack.move();

  return {
    origin: front.origin,
    chain,
    contract,
    customers,
    newPayers,
    instances,
    database,
    links,
    endpoints: { first: first.faults, second: second.faults },
    blocks,
    replaced: new Set(),
    programs: `${front.program}, ${database.programs}`,
    transfersSince: (block) => transfersSince(chain, block),
    stop: () => running.disposeAsync(),
  };
}

/** The operator's steps before the first payment. */
async function createCustomers(databaseUrl: string): Promise<readonly [Customer, ...Customer[]]> {
  const db = await openDatabase({ url: databaseUrl });
  await migrate(db);
  const organizations = createOrganizations({ db, pepper, now: Date.now });
  const create = async (name: string): Promise<Customer> => {
    const recipient = accountOf(name).address;
    await organizations.create({ id: name, name });
    await organizations.setRecipient(name, "base", recipient);
    const { key } = await organizations.createKey(name, { scopes: ["verify", "settle"] });
    return { key, recipient };
  };
  const [one, ...others] = customerNames;
  const customers: [Customer, ...Customer[]] = [await create(one)];
  for (const name of others) customers.push(await create(name));
  await db.destroy();
  return customers;
}
