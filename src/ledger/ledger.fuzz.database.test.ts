import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { backends, useTestDatabase } from "../../test/support/databases.ts";
import {
  chainId,
  createClock,
  createTestLedger,
  failed,
  operator,
  paymentOf,
  settled,
  signAsIf,
} from "../../test/support/ledger/test-ledger.ts";
import type { SettlementState } from "./settlement.ts";

describe.each(backends)("on $name", (backend) => {
  const database = useTestDatabase(backend);

  const leaseMs = 1_000;
  const instances = ["instance-1", "instance-2"] as const;

  const instance = fc.constantFrom(...instances);
  const nonce = fc.integer({ min: 0, max: 4 });
  const holder = fc.constantFrom("one", "two");

  const step = fc.oneof(
    fc.record({ do: fc.constant("acquire" as const), instance, nonce, holder }),
    fc.record({ do: fc.constant("release" as const), instance, nonce, holder }),
    fc.record({ do: fc.constant("renew" as const), instance }),
    fc.record({ do: fc.constant("wait" as const), ms: fc.constantFrom(1, 400, 999, 1_000) }),
    fc.record({
      do: fc.constant("claim" as const),
      instance,
      nonces: fc.array(nonce, { minLength: 1, maxLength: 3 }),
      signs: fc.boolean(),
    }),
    fc.record({ do: fc.constant("mine" as const), instance, txNonce: nonce, good: fc.boolean() }),
    fc.record({ do: fc.constant("deliver" as const), instance, nonce, holder }),
  );

  /** The ledger as its description has it, in a few maps. Every payment is 40 out of a balance of 100. */
  function createModel() {
    type Entry = { state: SettlementState; txNonce: number; delivered: boolean };
    const settlements = new Map<number, Entry>();
    const leases = new Map<number, { owner: string; expiresAt: number }>();
    let txNonces = 0;
    const closed = new Set<number>();
    return {
      settlements,
      acquire(payment: number, owner: string, time: number): boolean {
        const lease = leases.get(payment);
        if (lease !== undefined && lease.owner !== owner && lease.expiresAt > time) return false;
        leases.set(payment, { owner, expiresAt: time + leaseMs });
        return true;
      },
      release(payment: number, owner: string): boolean {
        if (leases.get(payment)?.owner !== owner) return false;
        return leases.delete(payment);
      },
      renew(instance: string, time: number): void {
        for (const lease of leases.values()) {
          if (lease.owner.startsWith(instance)) lease.expiresAt = time + leaseMs;
        }
        for (const [payment, lease] of leases)
          if (lease.expiresAt <= time - 10 * leaseMs) leases.delete(payment);
      },
      claim(payments: readonly number[], signs: boolean): string[] {
        // Blocks are mined at 60 and balances read at 50, so that what is settled makes the balance stale.
        const claimed: number[] = [];
        const outcomes = payments.map((payment) => {
          if (settlements.has(payment) || claimed.includes(payment)) return "taken";
          const count = (state: SettlementState) =>
            [...settlements.values()].filter((entry) => entry.state === state).length;
          const unfinished = count("submitted") + claimed.length;
          if ((unfinished + 1) * 40 > 100) return "over_balance";
          if ((unfinished + count("settled") + 1) * 40 > 100) return "stale_balance";
          claimed.push(payment);
          return "claimed";
        });
        if (claimed.length > 0 && signs) {
          const txNonce = txNonces++;
          for (const payment of claimed)
            settlements.set(payment, { state: "submitted", txNonce, delivered: false });
        }
        return outcomes;
      },
      riding: (txNonce: number) =>
        [...settlements].filter(([, entry]) => entry.txNonce === txNonce).map(([payment]) => payment),
      mine(txNonce: number, good: boolean): void {
        closed.add(txNonce);
        for (const entry of settlements.values()) {
          if (entry.txNonce === txNonce && entry.state === "submitted")
            entry.state = good ? "settled" : "failed";
        }
      },
      deliver(payment: number): void {
        const entry = settlements.get(payment);
        if (entry !== undefined) entry.delivered = true;
      },
      open: () => Array.from({ length: txNonces }, (_, txNonce) => txNonce).filter((one) => !closed.has(one)),
    };
  }

  test("any sequence of steps on two instances ends as the description has it", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const clock = createClock();
        const model = createModel();
        await database.clear();
        const db = await database.open();
        const ledgers = new Map(
          instances.map((instanceId) => [
            instanceId,
            createTestLedger(db, clock.now, { instanceId, leaseMs }),
          ]),
        );
        const of = (instanceId: (typeof instances)[number]) => {
          const ledger = ledgers.get(instanceId);
          if (ledger === undefined) throw new Error(`no ${instanceId}`);
          return ledger;
        };
        const payment = (nonce: number) => paymentOf(nonce, { amount: 40n });
        await of("instance-1").introduce();

        for (const one of steps) {
          switch (one.do) {
            case "acquire": {
              const acquired = await of(one.instance).acquireLease(payment(one.nonce).id, one.holder);
              expect(acquired).toBe(model.acquire(one.nonce, `${one.instance} ${one.holder}`, clock.now()));
              break;
            }
            case "release":
              await of(one.instance).releaseLease(payment(one.nonce).id, one.holder);
              model.release(one.nonce, `${one.instance} ${one.holder}`);
              break;
            case "renew":
              await of(one.instance).renewLeases();
              model.renew(one.instance, clock.now());
              break;
            case "wait":
              clock.advance(one.ms);
              break;
            case "claim": {
              const claim = of(one.instance).claimAll(one.nonces.map(payment), (txNonce) =>
                one.signs ? signAsIf(txNonce) : Promise.reject(new Error("does not sign")),
              );
              const outcomes = model.claim(one.nonces, one.signs);
              if (one.signs || !outcomes.includes("claimed"))
                expect((await claim).outcomes).toEqual(outcomes);
              else await expect(claim).rejects.toThrow("does not sign");
              break;
            }
            case "mine": {
              const conclude = one.good ? settled : (claim: { id: `0x${string}` }) => failed(claim);
              await of(one.instance).mine(
                one.txNonce,
                model.riding(one.txNonce).map((nonce) => conclude(payment(nonce))),
              );
              if (model.riding(one.txNonce).length > 0) model.mine(one.txNonce, one.good);
              break;
            }
            case "deliver":
              await of(one.instance).markDelivered(payment(one.nonce).id, one.holder);
              if (model.release(one.nonce, `${one.instance} ${one.holder}`)) model.deliver(one.nonce);
              break;
          }
        }

        const ledger = of("instance-2");
        for (let nonce = 0; nonce <= 4; nonce++) {
          const settlement = await ledger.find(payment(nonce).id);
          expect(
            settlement && {
              state: settlement.state,
              txNonce: settlement.txNonce,
              delivered: settlement.deliveredAt !== null,
            },
          ).toEqual(model.settlements.get(nonce) ?? null);
        }
        const open = await ledger.openAttempts(chainId, operator);
        expect(open.map(({ attempt }) => attempt.txNonce)).toEqual(model.open());
      }),
      { numRuns: 60 },
    );
  });
});
