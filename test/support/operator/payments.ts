import { setTimeout as sleep } from "node:timers/promises";
import type { Payer } from "../../../src/harness/control/pay.ts";
import type { HarnessChain } from "../../../src/harness/setup/prepare-chain.ts";
import type { TestPayerName } from "../../../src/payer/test-payers.ts";
import type { Address } from "../../../src/protocol/hex.ts";
import type { X402Version } from "../../../src/protocol/requests.ts";
import { requestJson } from "../../../src/util/http-client.ts";
import { instanceHeader } from "../balancer.ts";
import { accountOf, keyOf } from "../key-accounts.ts";
import type { Random } from "../random.ts";
import type { Body } from "../service.ts";
import { allWays, firstWays, newPayer, signInWay, type Way } from "../ways.ts";
import type { AnsweredPayment, Success } from "./judge-payments.ts";

/** An organization of the operator. */
export type Customer = { key: string; recipient: Address };

/** A payment in progress. */
export type Payment = {
  body: Body;
  customer: Customer;
  /** The `Idempotency-Key` that it is sent with; undefined if none. */
  idempotencyKey: string | undefined;
  /** How many callers send it at the same time. */
  callers: number;
  answered: AnsweredPayment & { successes: Success[]; refusals: string[] };
  /** When its last caller got a final response, on the clock of `performance.now()`; undefined until then. */
  decidedAt: number | undefined;
};

const plainPayers = ["one", "two", "three", "four", "five", "six"].map((name) => `operator's payer ${name}`);

/** Plain accounts, a contract wallet (ERC-1271), and a delegated account (EIP-7702). */
const payers: readonly [string, ...string[]] = ["smartWallet", "delegated", ...plainPayers];
const testPayers: ReadonlySet<string> = new Set<TestPayerName>(["smartWallet", "delegated"]);
const isTestPayer = (name: string): name is TestPayerName => testPayers.has(name);

/** A new payer, and the way in which it will pay. */
export type NewPayer = { way: Way; payer: Payer };

/** The number of payers who pay for the first time in a run: one in six payments, until none are left. */
const newPayerCount = 200;

/**
 * Funds the payers that are not the harness's, and approves Permit2 for those that pay repeatedly.
 *
 * @returns the new payers
 */
export async function fundPayers(chain: HarnessChain): Promise<NewPayer[]> {
  for (const name of plainPayers) {
    const { address } = accountOf(name);
    await chain.fund(address, 10n ** 12n);
    await chain.approvePermit2(address, 10n ** 12n);
  }
  const first: NewPayer[] = [];
  while (first.length < newPayerCount) {
    const way = firstWays[first.length % firstWays.length] ?? firstWays[0];
    first.push({ way, payer: await newPayer(way, { chain, value: 10n ** 9n }) });
  }
  return first;
}

/** Signs a payment of this value: a random payer, customer and way, and a random version if the way exists in both. */
export async function signRandomPayment(
  random: Random,
  {
    chain,
    contract,
    customers,
    newPayers,
    value,
  }: {
    chain: HarnessChain;
    contract: Address;
    customers: readonly [Customer, ...Customer[]];
    /** The payers who have not paid yet. */
    newPayers: NewPayer[];
    value: bigint;
  },
): Promise<Payment> {
  const name = random.pick(payers);
  const customer = random.pick(customers);
  const x402Version = random.pick<X402Version>([1, 2]);
  const dice = random.between(1, 10);
  const { recipient } = customer;
  const usual = { way: random.pick(allWays), payer: isTestPayer(name) ? name : keyOf(name) };
  const chosen = (random.between(1, 6) === 1 ? newPayers.pop() : undefined) ?? usual;
  const { body, payer, due, way, id } = await signInWay(chosen.way, {
    ...{ chain, contract, recipient, value, x402Version, validForSeconds: 7_200 },
    payer: chosen.payer,
  });
  return {
    body,
    customer,
    // A tenth is sent twice at once by impatient callers, another tenth by careful ones.
    callers: dice <= 2 ? 2 : 1,
    idempotencyKey: dice === 2 || dice === 3 ? id : undefined,
    answered: {
      ...{ payer, value: due, straight: way.straight, recipient },
      ...{ successes: [], refusals: [], saidToBeSettled: false },
    },
    decidedAt: undefined,
  };
}

/** How long a caller waits before it asks again if the response does not say, in milliseconds; doubles each time. */
const firstPauseMs = 300;
const longestPauseMs = 2_000;

/**
 * Sends a payment until it is decided, separately for each of its callers, and records the responses.
 *
 * @param isOver returns true if nobody waits any more
 */
export async function pay(payment: Payment, origin: string, isOver: () => boolean): Promise<void> {
  await Promise.all(Array.from({ length: payment.callers }, () => payOnce(payment, origin, isOver)));
  if (!isOver()) payment.decidedAt = performance.now();
}

async function payOnce(payment: Payment, origin: string, isOver: () => boolean): Promise<void> {
  const { body, customer, idempotencyKey, answered } = payment;
  const headers = {
    authorization: customer.key,
    ...(idempotencyKey !== undefined && { "idempotency-key": idempotencyKey }),
  };
  let pauseMs = firstPauseMs;
  while (!isOver()) {
    // A balancer's own response is not JSON.
    const answer = await requestJson(`${origin}/v1/settle`, { method: "POST", headers, body }).catch(
      () => undefined,
    );
    const { success, transaction, errorMessage, title } = Object(answer?.body);
    if (answer?.status === 200) {
      if (success === true) {
        const isKnown = answered.successes.some((earlier) => earlier.transaction === transaction);
        const isRepeat = idempotencyKey !== undefined && isKnown;
        const given = { instance: answer.headers[instanceHeader], at: performance.now() };
        if (!isRepeat) answered.successes.push({ transaction, ...given });
      } else if (/was settled before/.test(errorMessage)) answered.saidToBeSettled = true;
      else answered.refusals.push(String(errorMessage));
      return;
    }
    if (answer !== undefined && answer.status < 500 && answer.status !== 429) {
      answered.refusals.push(`HTTP ${answer.status} ${errorMessage ?? title}`);
      return;
    }
    const { "retry-after": asked } = answer?.headers ?? {};
    await sleep(
      asked === undefined ? pauseMs : Math.min(Math.max(Number(asked) * 1_000, 100), longestPauseMs),
    );
    pauseMs = Math.min(2 * pauseMs, longestPauseMs);
  }
}
