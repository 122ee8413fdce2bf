import { expect, test } from "vitest";
import { RecentPayments } from "./recent-payments.ts";
import { KeptPayment } from "./stored-payment.ts";

/** Ids of which many have the same last four digits, by which payments are looked for. */
const idOf = (index: number) => `0x${`${index}`.padStart(60, "0")}00${(index % 7).toString(16)}a`;

const create = (index: number) => new KeptPayment(idOf(index), undefined);

function setUp(most: number) {
  const forgotten: string[] = [];
  return { forgotten, recent: new RecentPayments(most, ({ id }) => forgotten.push(id)) };
}

test("it does what a map does that is ordered by renewals, with a tenth of its size for what is as good as newest", () => {
  const most = 50;
  const { recent } = setUp(most);
  /** From the oldest to the newest, with how many were renewed before. */
  const expected = new Map<string, { payment: KeptPayment; position: number; messages: number }>();
  let renewals = 0;
  let random = 1;
  for (let step = 0; step < 5_000; step++) {
    random = (random * 48_271) % 2_147_483_647;
    const id = idOf(random % 120);
    const known = expected.get(id);
    expect(recent.find(id)).toBe(known?.payment);
    const payment = known?.payment ?? create(random % 120);
    recent.renew(payment);
    if (known === undefined || renewals - known.position > most / 10) {
      expected.delete(id);
      if (expected.size === most) expected.delete([...expected.keys()][0] ?? "");
      expected.set(id, { payment, position: renewals++, messages: known?.messages ?? 0 });
    }
    const kept = expected.get(id);
    if (kept !== undefined && step % 3 === 0) {
      recent.count(payment, 1);
      payment.kept++;
      kept.messages++;
    }
    // Those that were renewed longer ago than the list is long are forgotten, however few there are.
    for (const [each, { position }] of expected) if (position < renewals - 128) expected.delete(each);
  }
  const ids = [...expected.keys()];
  expect([...recent.inOrder()].map(({ id }) => id)).toEqual(ids);
  expect(recent.newest(5).map(({ id }) => id)).toEqual(ids.slice(-5).reverse());
  expect(recent.messages).toBe([...expected.values()].reduce((sum, { messages }) => sum + messages, 0));
});

test("payments that are renewed again and again push no other out", () => {
  const { recent } = setUp(100);
  const payments = Array.from({ length: 100 }, (_, index) => create(index));
  for (const payment of payments) recent.renew(payment);
  const [first, second] = payments;
  if (first === undefined || second === undefined) throw new Error("there are 100");
  for (let index = 0; index < 10_000; index++) recent.renew(index % 2 === 0 ? first : second);
  expect([...recent.inOrder()]).toHaveLength(100);
});

test("those that a transaction carries are told of when they are forgotten, and nothing is counted of them any more", () => {
  const { forgotten, recent } = setUp(2);
  const [one, other, third] = [create(1), create(2), create(3)];
  for (const payment of [one, other]) recent.renew(payment);
  recent.noteCarried(one);
  recent.count(one, 3);
  recent.renew(third);
  expect(forgotten).toEqual([one.id]);
  recent.count(one, 3);
  expect(recent.messages).toBe(0);
  expect(recent.forgetOldest()).toBe(true);
  expect(recent.forgetOldest()).toBe(false);
  expect(recent.find(third.id)).toBeUndefined();
  expect(forgotten).toEqual([one.id]);
});

test("after everything was forgotten, it goes on as a new one", () => {
  const { forgotten, recent } = setUp(3);
  const payments = Array.from({ length: 5 }, (_, index) => create(index));
  for (const payment of payments) recent.renew(payment);
  recent.noteCarried(payments[4] ?? create(4));
  recent.count(payments[4] ?? create(4), 2);
  recent.clear();
  expect([...recent.inOrder()]).toEqual([]);
  expect(recent.messages).toBe(0);
  expect(recent.find(idOf(4))).toBeUndefined();
  const again = Array.from({ length: 5 }, (_, index) => create(index));
  for (const payment of again) recent.renew(payment);
  expect([...recent.inOrder()]).toEqual(again.slice(2));
  expect(forgotten).toEqual([]);
});
