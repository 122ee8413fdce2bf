import { expect, test } from "vitest";
import { paymentBody } from "../../../test/support/http/stub-app.ts";
import { addressOf, hashOf } from "../../../test/support/ledger/test-ledger.ts";
import type { Chain } from "../../chain/chain.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Settlement } from "../../ledger/settlement.ts";
import { parsePaymentRequest } from "../../methods/methods.ts";
import { waysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import { networks } from "../../protocol/networks.ts";
import { createOpenMaxima } from "../../protocol/open-maxima.ts";
import type { Caller } from "../organizations/organizations.ts";
import type { Relayer } from "../relayer/relayer.ts";
import { createOutcomes } from "../relayer/slot.ts";
import type { Submission } from "../relayer/submission-queue.ts";
import type { Lane } from "./context.ts";
import { createSettle } from "./settle.ts";

const body = paymentBody();
const network = {
  ...networks.base,
  facilitatorContract: body.paymentRequirements.payTo,
  rpcUrls: ["http://127.0.0.1:1"],
  assets: [networks.base.usdc],
  confirmations: 1,
  maxFeePerGas: 10n ** 9n,
};
const caller: Caller = {
  organization: { id: "shop", name: "Shop", recipients: { base: addressOf(0x5e) }, limits: {} },
  keyId: "key",
  scopes: ["settle"],
};

let time: number;
/** True if the right to the answer is held. */
let isHeld: boolean;

/**
 * Settles a payment that is mined at once, after the process has stood still for a while with its claim. `isTaken`:
 * another instance has the right to the answer by then.
 */
async function settleAfterStandingStill(ms: number, { isTaken }: { isTaken: boolean }) {
  time = 1_800_000_000_000;
  let claimed: Submission["claim"] | undefined;
  let leases = 0;
  isHeld = false;
  const outcomes = createOutcomes();
  // Of chain, relayer and ledger nothing is needed but what one settle asks.
  const chain = {
    network,
    askWallet: async () => "accepted",
    simulate: async () => ({
      head: { number: 5n, timestamp: 4_102_444_700n, baseFeePerGas: 1n, gasLimit: 30_000_000n },
      revert: undefined,
      funds: { payer: 10n ** 12n, operator: 10n ** 18n, tip: 1n },
      payerCode: null,
    }),
  } as unknown as Chain;
  const relayer = {
    async submit({ claim }: Submission) {
      claimed = claim;
      time += ms;
      setTimeout(() => outcomes.announce([claim.id]), 10);
      return "claimed";
    },
    health: { worked() {}, isAvoided: () => false },
  } as unknown as Relayer;
  const ledger = {
    leases: {
      async acquireLease() {
        isHeld = await Promise.resolve(++leases === 1 || !isTaken);
        return isHeld;
      },
      async releaseLease() {
        isHeld = false;
      },
    },
    claims: {
      async find() {
        if (claimed === undefined) return null;
        const outcome = { state: "settled", transactionHash: hashOf("transaction"), deliveredAt: null };
        return { ...claimed, ...outcome } as unknown as Settlement;
      },
    },
  } as unknown as Ledger;
  const lane = { chain, relayer, canSend: () => true, isLow: () => false } as unknown as Lane;
  const settle = createSettle(
    {
      networks: new Map([["base", [lane]]]),
      recoveries: new Map(),
      ledger,
      ways: waysToPay,
      outcomes,
      now: () => time,
      settleWaitMs: { 1: 80_000, 2: 45_000 },
      serviceId: "test",
      closing: new AbortController().signal,
    },
    createOpenMaxima(),
  );
  const parsed = parsePaymentRequest(body);
  if (!parsed.ok) throw new Error("the payment cannot be read");
  return settle(parsed.request, caller, new AbortController().signal);
}

test("a success is handed over once a payment is settled", async () => {
  expect(await settleAfterStandingStill(0, { isTaken: false })).toMatchObject({ kind: "success" });
});

test("a process that stood still after its claim gives no success that another one has the right to", async () => {
  const transaction = hashOf("transaction");
  expect(await settleAfterStandingStill(60_000, { isTaken: true })).toEqual({ kind: "pending", transaction });
});

test("a process that stood still after its claim gives the success if it still has the right to it", async () => {
  expect(await settleAfterStandingStill(60_000, { isTaken: false })).toMatchObject({ kind: "success" });
});

test.each([
  { what: "is not complete any more where another one has the right to it", isTaken: true, isDue: false },
  { what: "is complete where it still has the right to it", isTaken: false, isDue: true },
])("the success of a process that stands still with it $what", async ({ isTaken, isDue }) => {
  const result = await settleAfterStandingStill(0, { isTaken });
  if (result.kind !== "success") throw new Error("nothing was settled");
  expect(await result.delivery.isDue()).toBe(true);
  time += 60_000;
  expect(await result.delivery.isDue()).toBe(isDue);
});

test.each([
  { when: "before", isAskedFirst: false },
  { when: "while", isAskedFirst: true },
])(
  "a success that is lost $when it is asked for whether it is due leaves the right to it free",
  async (order) => {
    const result = await settleAfterStandingStill(0, { isTaken: false });
    if (result.kind !== "success") throw new Error("nothing was settled");
    time += 60_000;
    const { isDue, lost } = result.delivery;
    const asked = order.isAskedFirst ? isDue() : undefined;
    await lost();
    expect(await (asked ?? isDue())).toBe(false);
    expect(isHeld).toBe(false);
  },
);
