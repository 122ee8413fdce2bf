import fc from "fast-check";
import { decodeEventLog, encodeErrorResult } from "viem";
import { expect, test } from "vitest";
import {
  authorizationCanceled,
  authorizationUsed,
  forwarded,
  payment,
  settledLog,
  settlementFailed,
  transfer,
  type UnplacedLog,
} from "../../../test/support/logs.ts";
import { mockUsdcAbi } from "../../contracts/mockUsdc.ts";
import { x402FacilitatorAbi } from "../../contracts/x402Facilitator.ts";
import { type Address, type Hex, toHex } from "../../protocol/hex.ts";
import { authorizationKey, decodeEvent } from "./events.ts";

const abi = [...x402FacilitatorAbi, ...mockUsdcAbi];
const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length }).map(toHex);
const payments = fc.record({
  asset: bytes(20),
  payer: bytes(20),
  authorizationNonce: bytes(32),
  value: fc.bigInt(0n, 2n ** 256n - 1n),
  recipient: bytes(20),
});
const reason = encodeErrorResult({ abi: x402FacilitatorAbi, errorName: "EnforcedPause" });

const decode = (log: UnplacedLog) => decodeEvent({ ...log, logIndex: 3 });

/** A log as viem reads it, by the names of the ABIs, in lower case. */
function decodeWithViem(log: UnplacedLog): Record<string, unknown> {
  const [topic, ...indexed] = log.topics;
  if (topic === undefined) throw new Error("a log without topics");
  const { eventName, args } = decodeEventLog({ abi, topics: [topic, ...indexed], data: log.data });
  const entries = Object.entries(args).map(([name, value]) => [
    name === "authorizer" ? "payer" : name === "nonce" ? "authorizationNonce" : name,
    typeof value === "string" ? value.toLowerCase() : value,
  ]);
  return { name: eventName, ...Object.fromEntries(entries) };
}

test("every event is read as its ABI says", () => {
  const makers = [
    settledLog,
    forwarded,
    authorizationUsed,
    authorizationCanceled,
    transfer,
    (of: typeof payment) => settlementFailed(of, reason),
  ];
  for (const make of makers) {
    fc.assert(
      fc.property(payments, (of) => {
        const log = make(of);
        const emitter = log.address.toLowerCase();
        expect({ token: emitter, ...decode(log) }).toEqual({
          token: emitter,
          ...decodeWithViem(log),
          emitter,
          logIndex: 3,
        });
      }),
      { numRuns: 30 },
    );
  }
});

test.each<[string, Partial<UnplacedLog>]>([
  ["with a topic more", { topics: [...settledLog(payment).topics, payment.authorizationNonce] }],
  ["with a topic less", { topics: settledLog(payment).topics.slice(0, 3) }],
  ["with no topic at all", { topics: [] }],
  ["of another name", { topics: [payment.authorizationNonce, ...settledLog(payment).topics.slice(1)] }],
  ["with a payer that is no address", { topics: settledLog(payment).topics.with(2, `0x${"1".repeat(64)}`) }],
  ["with a word less", { data: settledLog(payment).data.slice(0, -64) as Hex }],
  ["with a word more", { data: `${settledLog(payment).data}${"0".repeat(64)}` }],
  ["with a recipient that is no address", { data: `0x${"1".repeat(128)}` }],
])("a log %s is none of the events", (_, changes) => {
  expect(decode({ ...settledLog(payment), ...changes })).toBeUndefined();
});

test("a failure whose reason cannot be read has no reason", () => {
  const log = settlementFailed(payment, reason);
  expect(decode({ ...log, data: "0x" })).toMatchObject({ name: "SettlementFailed", reason: "0x" });
});

test("casing makes no difference", () => {
  const upper = (hex: Hex): Hex => `0x${hex.slice(2).toUpperCase()}`;
  const log = settledLog(payment);
  const shouted = { address: upper(log.address), topics: log.topics.map(upper), data: upper(log.data) };
  expect(decode(shouted)).toEqual(decode(log));

  const ref = { token: payment.asset, payer: payment.payer, authorizationNonce: payment.authorizationNonce };
  const shoutedRef = {
    token: upper(ref.token) as Address,
    payer: upper(ref.payer),
    authorizationNonce: upper(ref.authorizationNonce),
  };
  expect(authorizationKey(shoutedRef)).toBe(authorizationKey(ref));
});
