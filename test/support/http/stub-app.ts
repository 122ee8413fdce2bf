import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createLogger } from "../../../src/observe/log/logger.ts";
import type { Hex } from "../../../src/protocol/hex.ts";
import type { PaymentRequest } from "../../../src/protocol/requests.ts";
import type { Facilitator } from "../../../src/service/facilitator/facilitator.ts";
import type { IdempotencyKey } from "../../../src/service/facilitator/idempotent.ts";
import {
  alreadyDelivered,
  type Delivery,
  type SettleResult,
} from "../../../src/service/facilitator/settle-result.ts";
import { type AppOptions, createApp } from "../../../src/service/http/app.ts";
import type { Caller, Organizations } from "../../../src/service/organizations/organizations.ts";

/** How the delivery of a success ended. */
type Fate = Extract<keyof Delivery, "delivered" | "lost">;

/** A settle call to the facilitator, to be answered by the test. */
export type AskedSettle = {
  request: PaymentRequest;
  signal: AbortSignal;
  idempotency: IdempotencyKey | undefined;
  answer(result: SettleResult): void;
  fail(error: unknown): void;
  /** Answers with a success, and records what became of it. */
  succeed(transaction?: Hex): { fates: readonly Fate[] };
};

export type StubApp = {
  origin: string;
  port: number;
  /** In the order they were requested. */
  settles: AskedSettle[];
  /** Resolves with the settle at this index, from 0, once it was requested. */
  settle(index: number): Promise<AskedSettle>;
  /** The parsed log lines. */
  log: Record<string, unknown>[];
  /** How often an API key was checked. */
  authentications(): number;
  close(): Promise<void>;
};

export const goodKey = `x4k_good_${"0".repeat(64)}`;
/** The API key of another organization. */
export const otherKey = `x4k_other_${"0".repeat(64)}`;
export const goodKeys: readonly string[] = [goodKey, otherKey];

/** The HTTP service, listening on loopback, with the test in place of the facilitator. */
export async function startStubApp(
  options: Partial<AppOptions> & { verify?: Facilitator["verify"]; logLevel?: string } = {},
): Promise<StubApp> {
  const settles: AskedSettle[] = [];
  const log: Record<string, unknown>[] = [];
  let authentications = 0;

  const facilitator: Facilitator = {
    verify: options.verify ?? (async () => undefined),
    settle(request, _caller, signal, onNamed, { idempotency } = {}) {
      onNamed(request);
      const { promise, resolve, reject } = Promise.withResolvers<SettleResult>();
      const settle: AskedSettle = {
        request,
        signal,
        idempotency,
        answer: resolve,
        fail: reject,
        succeed(transaction = `0x${"7a".repeat(32)}`) {
          const fates: Fate[] = [];
          const note = (fate: Fate) => async () => void fates.push(fate);
          const delivery = { ...alreadyDelivered, delivered: note("delivered"), lost: note("lost") };
          resolve({ kind: "success", transaction, delivery });
          return { fates };
        },
      };
      settles.push(settle);
      return promise;
    },
    nameReason: undefined,
    networkOf: () => undefined,
    warningsOf: () => [],
    findSettlement: async () => null,
    listSettlements: async () => ({ settlements: [], next: null }),
    isNamedBySettle: () => false,
    supported: () => ({ kinds: [], extensions: [], signers: {} }),
  };

  const app = await createApp({
    facilitator,
    organizations: {
      async authenticate(key: string): Promise<Caller | null> {
        authentications++;
        if (!goodKeys.includes(key)) return null;
        const organization = {
          id: key === goodKey ? "org" : "other",
          name: "Org",
          recipients: {},
          limits: {},
        };
        return { organization, keyId: key.split("_")[1] ?? "", scopes: ["verify", "settle"] };
      },
    } as Organizations,
    checkHealth: async () => ({ base: { ready: true, detail: "ok" } }),
    now: () => Date.now(),
    logger: createLogger(options.logLevel ?? "debug", {
      write: (line: string) => void log.push(JSON.parse(line)),
    }),
    ...options,
  });
  const origin = await app.listen({ host: "127.0.0.1", port: 0 });

  return {
    origin,
    port: (app.server.address() as AddressInfo).port,
    settles,
    async settle(index) {
      for (;;) {
        const settle = settles[index];
        if (settle !== undefined) return settle;
        await sleep(5);
      }
    },
    log,
    authentications: () => authentications,
    close: () => app.close(),
  };
}

/** A well-formed body; the test decides if the payment is good. */
export function paymentBody(change: { network?: string; authorizationNonce?: Hex } = {}) {
  const { network = "base", authorizationNonce = `0x${"01".repeat(32)}` } = change;
  const contract = "0x4020000000000000000000000000000000000001";
  return {
    paymentPayload: {
      x402Version: 1,
      scheme: "exact",
      network,
      payload: {
        signature: `0x${"11".repeat(64)}1b`,
        authorization: {
          from: "0x857b06519E91e3A54538791bDbb0E22373e36b66",
          to: contract,
          value: "10000",
          validAfter: "0",
          validBefore: "4102444800",
          nonce: authorizationNonce,
        },
      },
    },
    paymentRequirements: {
      scheme: "exact",
      network,
      maxAmountRequired: "10000",
      payTo: contract,
      asset: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
    },
  };
}
