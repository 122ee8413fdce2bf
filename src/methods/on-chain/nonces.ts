import type { ChainReader } from "../../chain/chain-reader.ts";
import {
  type createLogReader,
  type EventLog,
  type LogFilter,
  type MinedLog,
  readReceiptsAt,
} from "../../chain/logs-and-receipts.ts";
import { headCall, readHead } from "../../chain/rpc/calls.ts";
import type { RpcReader } from "../../chain/rpc/rpc.ts";
import { type Address, addressWord, type Hex, isBytes32, quantity, sameAddress } from "../../protocol/hex.ts";
import type { SignedPayment } from "../../protocol/signed-payment.ts";
import { membersOf } from "../../util/json.ts";
import { authorizationUse, endsOf } from "../exact-eip3009/on-chain/eip3009-state.ts";
import { nonceUse } from "../permit2/on-chain/permit2-state.ts";
import { cancellationsOf } from "../permit2/on-chain/submissions.ts";
import { permit2Address } from "../permit2/permit.ts";
import { decodeEvent, decodeEvents, type PaymentEvent, permit2SettledTopic, readUses } from "./events.ts";
import type { PaymentUse } from "./settling.ts";
import type { WordSource } from "./state-facts.ts";

/** The fields of a payment that its token and the contract with its nonce know. */
export type KnownPayment = Pick<SignedPayment, "asset" | "payer" | "nonce" | "nonceSpace">;

/** How to read the state and history of a payment's nonce, for display. */
type Nonces = {
  readonly use: WordSource<boolean>;
  /** The logs that can show how it was used or canceled; one of them does. */
  readonly ends: readonly LogFilter[];
  isEnd(log: EventLog): boolean;
  /** The meaning of such a log, among the events of its transaction. */
  describe(log: EventLog, events: readonly PaymentEvent[]): Pick<PaymentUse, "kind" | "moved">;
};

/** Returns true if Permit2 keeps the nonce of a payment, rather than its token. */
export function isOfPermit2({ nonceSpace }: Pick<KnownPayment, "nonceSpace">): boolean {
  return sameAddress(nonceSpace, permit2Address);
}

/**
 * @param facilitatorContract the only contract whose events name a Permit2 payment; uses that others have submitted are not
 * found
 */
export function noncesOf(payment: KnownPayment, facilitatorContract?: Address): Nonces {
  return isOfPermit2(payment) ? ofPermit2(payment, facilitatorContract) : ofToken(payment);
}

function ofToken(payment: KnownPayment): Nonces {
  return {
    use: authorizationUse(payment),
    ends: [endsOf(payment)],
    isEnd: () => true,
    describe(log, events) {
      const moved = readUses(events).find(({ use }) => use.logIndex === log.logIndex)?.transfer;
      const isUse = decodeEvent(log)?.name === "AuthorizationUsed";
      return { kind: isUse ? "used" : "cancelled", moved: moved && { to: moved.to, value: moved.value } };
    },
  };
}

function ofPermit2(payment: KnownPayment, facilitatorContract: Address | undefined): Nonces {
  const { asset, payer, nonce } = payment;
  const cancellations = cancellationsOf(payment);
  const topics = [permit2SettledTopic, `0x${addressWord(asset)}`, `0x${addressWord(payer)}`, nonce] as const;
  const settlements =
    facilitatorContract === undefined ? [] : [{ address: facilitatorContract, topics: [...topics] }];
  const isSettlement = (log: EventLog) => decodeEvent(log)?.name === "Permit2Settled";
  return {
    use: nonceUse(payment),
    ends: [...settlements, cancellations.filter],
    isEnd: (log) => isSettlement(log) || cancellations.has(log),
    describe(log) {
      const event = decodeEvent(log);
      return event?.name === "Permit2Settled"
        ? { kind: "used", moved: { to: event.recipient, value: event.value } }
        : { kind: "cancelled", moved: undefined };
    },
  };
}

type Searched = {
  rpc: RpcReader;
  reader: ChainReader;
  readLogs: ReturnType<typeof createLogReader>;
  facilitatorContract: Address | undefined;
};

/** Blocks per request, newest first: most authorizations were used recently. */
const blocksAtOnce = 2_000n;

/**
 * Searches the newest blocks for the transaction that used or canceled the authorization of a payment, from any
 * sender. For display only: a reorganization may change the result.
 *
 * @param about the settlement's id, so that observers can attribute requests to it
 * @returns undefined if the authorization is unused, or was used in older blocks
 * @throws {UndeterminedError} if the chain does not answer
 */
export async function findUse(
  { rpc, reader, readLogs, facilitatorContract }: Searched,
  payment: KnownPayment,
  { about, blocks }: { about: Hex; blocks: bigint },
): Promise<PaymentUse | undefined> {
  const nonces = noncesOf(payment, facilitatorContract);
  const { target: to, data } = nonces.use.view;
  const state = { method: "eth_call", params: [{ to, data }, "latest"], about };
  const [used, newest] = await rpc.ask([state, headCall]);
  const isUsed = reader.expect("whether a nonce is used", used, (result) =>
    isBytes32(result) ? nonces.use.read({ word: result }) : undefined,
  );
  if (!isUsed) return undefined;
  const { number: head } = reader.expect("the newest block", newest, readHead);

  const filters = nonces.ends.map((filter) => ({ ...filter, about }));
  async function find(): Promise<MinedLog | undefined> {
    const oldest = head >= blocks ? head - blocks + 1n : 0n;
    for (let last = head; last >= oldest; last -= blocksAtOnce) {
      const first = last - oldest >= blocksAtOnce ? last - blocksAtOnce + 1n : oldest;
      for await (const logs of readLogs(filters, first, last)) {
        const log = logs.find(nonces.isEnd);
        if (log !== undefined) return log;
      }
    }
    return undefined;
  }
  const log = await find();
  if (log === undefined) return undefined;

  const { transactionHash: transaction, blockNumber } = log;
  const [[receipt], [block, sent]] = await Promise.all([
    readReceiptsAt(reader, [log]),
    rpc.ask([
      { method: "eth_getBlockByNumber", params: [quantity(blockNumber), false] },
      { method: "eth_getTransactionByHash", params: [transaction] },
    ]),
  ]);
  const { timestamp } = reader.expect("a block", block, readHead);
  const { from: sender, to: called } = membersOf(sent?.result);
  const events = receipt === undefined ? [] : decodeEvents(receipt);
  return {
    ...nonces.describe(log, events),
    transaction,
    blockNumber,
    timestamp,
    sender: typeof sender === "string" ? sender : null,
    to: typeof called === "string" ? called : null,
  };
}
