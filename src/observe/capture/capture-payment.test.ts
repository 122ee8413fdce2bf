import { describe, expect, test } from "vitest";
import { examplePayment, parseBody } from "../../../test/support/example-payment.ts";
import { namedContract, permitBody } from "../../../test/support/generated-bodies.ts";
import { permit2Address } from "../../methods/permit2/permit.ts";
import { type Address, addressWord, keccak256Text, uintWord } from "../../protocol/hex.ts";
import { networks } from "../../protocol/networks.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { type CapturedState, rewindState } from "./capture-payment.ts";

const { base } = networks;
const facilitatorContract = namedContract;
const payment = examplePayment({});
const payer = `0x${addressWord(payment.payment.payer)}`;
const topic = (event: string) => keccak256Text(event);
const transfer = topic("Transfer(address,address,uint256)");
const used = topic("AuthorizationUsed(address,bytes32)");

const later: CapturedState = {
  payerBalance: "100",
  payerHasCode: false,
  walletAccepts: null,
  authorizationUsed: true,
  payerBlacklisted: false,
  assetPaused: true,
};

/** Of the token, where no other emitter is named. */
type Log = { topics: readonly string[]; data: string; address?: string };

/** A chain whose token has logged these, in this order. */
function chainWith(logs: readonly Log[] | undefined) {
  const asked: unknown[] = [];
  return {
    asked,
    chain: {
      network: base,
      asset: base.usdc,
      facilitatorContract,
      async ask(_: string, filter: unknown) {
        asked.push(filter);
        if (logs === undefined) return { error: { code: -32_000, message: "no", data: undefined } };
        const { topics, address } = filter as {
          topics: readonly (string | null | readonly string[])[];
          address: string;
        };
        const isIt = (log: Log) =>
          topics.every(
            (wanted, place) => wanted === null || [wanted].flat().includes(log.topics[place] ?? ""),
          );
        const emitted = logs.map((log) => ({ address: base.usdc.address, logIndex: "0x1", ...log }));
        return { result: emitted.filter((log) => log.address === address && isIt(log)) };
      },
    },
  };
}

const rewind = (
  logs: readonly Log[] | undefined,
  [to, at] = [10n, 20n],
  { of = payment, state = later }: { of?: PaymentRequest; state?: CapturedState } = {},
) => rewindState(chainWith(logs).chain, of, { to, at, state });

const amount = (value: bigint): `0x${string}` => `0x${uintWord(value)}`;
const word = (address: Address) => `0x${addressWord(address)}`;
const other = `0x${"00".repeat(31)}07`;

test("what the payer sent since is added to the balance, and what came is taken off", async () => {
  const logs = [
    { topics: [transfer, payer, other], data: amount(30n) },
    { topics: [transfer, other, payer], data: amount(120n) },
    { topics: [transfer, payer, payer], data: amount(5n) },
    { topics: [transfer, other, other], data: amount(9n) },
  ];
  expect(await rewind(logs)).toEqual({ ...later, payerBalance: "10" });
});

test("an authorization that was used since was free; one that was used before it was used", async () => {
  const nonce = payment.payment.nonce;
  const since = await rewind([{ topics: [used, payer, nonce], data: "0x" }]);
  expect(since?.authorizationUsed).toBe(false);
  expect((await rewind([{ topics: [used, payer, other], data: "0x" }]))?.authorizationUsed).toBe(true);
});

test("before the first event about blacklist or pause, the opposite held", async () => {
  const logs = [
    { topics: [topic("UnBlacklisted(address)"), payer], data: "0x" },
    { topics: [topic("Blacklisted(address)"), payer], data: "0x" },
    { topics: [topic("Pause()")], data: "0x" },
  ];
  expect(await rewind(logs)).toMatchObject({ payerBlacklisted: true, assetPaused: false });
  expect(await rewind(logs.slice(1))).toMatchObject({ payerBlacklisted: false });
  expect(await rewind([])).toEqual(later);
});

test("a node without logs says nothing, and the block itself needs none", async () => {
  expect(await rewind(undefined)).toBeUndefined();
  expect(await rewind(undefined, [20n, 20n])).toEqual(later);
});

describe("of a payment by Permit2", () => {
  const of = parseBody(permitBody("exact", `0x${"02".repeat(65)}`));
  const from = `0x${addressWord(of.payment.payer)}`;
  const state = { ...later, payerAllowance: "50" };
  const rewound = (logs: readonly Log[]) => rewind(logs, [10n, 20n], { of, state });
  const token = `0x${addressWord(base.usdc.address)}`;
  const settled = (nonce: string) => ({
    address: facilitatorContract,
    topics: [topic("Permit2Settled(address,address,uint256,address,uint256)"), token, from, nonce],
    data: `${amount(30n)}${uintWord(30n)}`,
  });
  const invalidated = (mask: bigint) => ({
    address: permit2Address,
    topics: [topic("UnorderedNonceInvalidation(address,uint256,uint256)"), from],
    data: `${amount(0n)}${uintWord(mask)}`,
  });

  test("a nonce that was used or cancelled since was free, and no other", async () => {
    expect(of.payment.nonce).toBe(amount(7n));
    for (const since of [settled(amount(7n)), invalidated(1n << 7n)])
      expect((await rewound([since]))?.authorizationUsed).toBe(false);
    for (const since of [
      settled(amount(8n)),
      invalidated(1n << 8n),
      { ...settled(amount(7n)), address: other },
    ])
      expect((await rewound([since]))?.authorizationUsed).toBe(true);
  });

  test("what was sent since was approved before, and an approval in between hides what was", async () => {
    const sent = { topics: [transfer, from, other], data: amount(30n) };
    expect(await rewound([sent])).toMatchObject({ payerBalance: "130", payerAllowance: "80" });
    const approved = { topics: [topic("Approval(address,address,uint256)"), from, word(permit2Address)] };
    expect(await rewound([{ ...approved, data: amount(30n) }])).toBeUndefined();
    const toAnother = {
      topics: [...approved.topics.slice(0, 2), word(facilitatorContract)],
      data: amount(30n),
    };
    expect(await rewound([toAnother])).toEqual(state);
  });
});
