import { expect, test } from "vitest";
import { examplePayment } from "../../../test/support/example-payment.ts";
import { addressWord, keccak256Text, uintWord } from "../../protocol/hex.ts";
import { networks } from "../../protocol/networks.ts";
import { type CapturedState, rewindState } from "./capture-payment.ts";

const { base } = networks;
const payment = examplePayment({});
const payer = `0x${addressWord(payment.payment.payer)}`;
const topic = (event: string) => keccak256Text(event);
const transfer = topic("Transfer(address,address,uint256)");
const used = topic("AuthorizationUsed(address,bytes32)");

const later: CapturedState = {
  ...{ payerBalance: "100", payerHasCode: false, walletAccepts: null },
  ...{ authorizationUsed: true, payerBlacklisted: false, assetPaused: true },
};

type Log = { topics: readonly string[]; data: string };

/** A chain whose token has logged these, in this order. */
function chainWith(logs: readonly Log[] | undefined) {
  const asked: unknown[] = [];
  return {
    asked,
    chain: {
      network: base,
      asset: base.usdc,
      async ask(_: string, filter: unknown) {
        asked.push(filter);
        if (logs === undefined) return { error: { code: -32_000, message: "no", data: undefined } };
        const { topics } = filter as { topics: readonly (string | null | readonly string[])[] };
        const isIt = (log: Log) =>
          topics.every(
            (wanted, place) => wanted === null || [wanted].flat().includes(log.topics[place] ?? ""),
          );
        return { result: logs.filter(isIt) };
      },
    },
  };
}

const rewind = (logs: readonly Log[] | undefined, [to, at] = [10n, 20n]) =>
  rewindState(chainWith(logs).chain, payment, { to, at, state: later });

const amount = (value: bigint) => `0x${uintWord(value)}`;
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
