import type { ChainQueries } from "../../../chain/chain.ts";
import type { ChainReader } from "../../../chain/chain-reader.ts";
import {
  type EventLog,
  type LogFilter,
  type MinedLog,
  readReceiptsAt,
} from "../../../chain/logs-and-receipts.ts";
import { addressWord, type Hex, keccak256Text, sameAddress, wordAt } from "../../../protocol/hex.ts";
import { goesStraight, type SignedPayment } from "../../../protocol/signed-payment.ts";
import { membersOf } from "../../../util/json.ts";
import { decodeEvent, transferTopic } from "../../on-chain/events.ts";
import type { Search, TransferPlace } from "../../on-chain/settling.ts";
import { wasUsedBy } from "../../on-chain/use-reader.ts";
import { permit2Address } from "../permit.ts";
import { permitOf } from "../permit2-payload.ts";
import { type SentCall, submitsPayment } from "./permit2-calls.ts";
import { bitOf, nonceUse } from "./permit2-state.ts";

/*
 * Payments of scheme "exact" that somebody else has submitted to the proxy. No event contains a payment's nonce, so the
 * transaction itself is the proof: it calls the proxy with this very payment, it succeeded, and the token logged the
 * transfer. A submission from within another contract is not found; value that it brought to the facilitator contract is
 * listed by `x402-kit stranded`.
 */

const nonceInvalidatedTopic = keccak256Text("UnorderedNonceInvalidation(address,uint256,uint256)");

/** Finds the transfer of a payment that others have submitted; null if no transaction in these blocks shows it. */
export async function findSubmission(
  { reader, readLogs }: ChainQueries,
  { payment, fromBlock, toBlock, id: about }: Search,
): Promise<TransferPlace | null> {
  const permit = permitOf(payment);
  const topics = [
    transferTopic,
    `0x${addressWord(payment.payer)}`,
    `0x${addressWord(payment.payTo)}`,
  ] as const;
  const filter = { address: payment.asset, topics: [...topics], about };
  const isOfAmount = (log: MinedLog) => {
    const event = decodeEvent(log);
    return event?.name === "Transfer" && event.value === payment.limit;
  };
  for await (const logs of readLogs([filter], fromBlock, toBlock)) {
    const transfers = logs.filter(isOfAmount);
    const calls = await Promise.all(
      transfers.map(({ transactionHash }) => readCall(reader, transactionHash, about)),
    );
    for (const [index, log] of transfers.entries()) {
      const { transactionHash, logIndex, blockNumber, blockHash } = log;
      const sent = calls[index];
      if (sent === undefined || !submitsPayment(sent, permit)) continue;
      const [receipt] = await readReceiptsAt(reader, [log]);
      if (receipt?.succeeded === true) return { transactionHash, logIndex, blockNumber, blockHash };
    }
  }
  return null;
}

/** The target and calldata of a mined transaction; undefined if it deploys a contract. */
export async function readCall(
  { ask, expect }: ChainReader,
  transactionHash: Hex,
  about: Hex | undefined,
): Promise<SentCall | undefined> {
  const [sent] = await ask([{ method: "eth_getTransactionByHash", params: [transactionHash], about }]);
  const { to, input } = membersOf(
    expect("a transaction", sent, (result) => (result === null ? undefined : membersOf(result))),
  );
  return typeof to === "string" && typeof input === "string" ? { to, input } : undefined;
}

/**
 * {@link Recovery.findDirectSubmission}: proven by the transaction that called the proxy with this very payment and by its
 * transfer to the facilitator contract. If the nonce was used in any other way, nothing shows that the contract got value.
 */
export async function findDirectSubmission(
  chain: ChainQueries,
  search: Search,
): Promise<TransferPlace | "cancelled" | null> {
  const { payment, fromBlock, toBlock, id } = search;
  // Submitting a payment that goes directly to its payee also pays it out: findPayout() finds that.
  if (goesStraight(payment, chain.network)) return null;
  const used = await wasUsedBy(chain.reader, nonceUse, { ...payment, id }, toBlock);
  if (used === false) return null;
  const found = await findSubmission(chain, search);
  if (found !== null) return found;
  const { filter, has } = cancellationsOf(payment);
  for await (const logs of chain.readLogs([{ ...filter, about: id }], fromBlock, toBlock)) {
    if (logs.some(has)) return "cancelled";
  }
  return null;
}

/** A filter for the Permit2 logs in which a payer cancels nonces, and a test if a log cancels this payment's nonce. */
export function cancellationsOf({ payer, nonce }: Pick<SignedPayment, "payer" | "nonce">): {
  filter: LogFilter;
  has(log: EventLog): boolean;
} {
  const { word, bit } = bitOf({ nonce });
  return {
    filter: { address: permit2Address, topics: [nonceInvalidatedTopic, `0x${addressWord(payer)}`] },
    has({ address, data }) {
      const [place, mask] = [wordAt(data, 0), wordAt(data, 1)];
      if (place === undefined || mask === undefined || !sameAddress(address, permit2Address)) return false;
      return BigInt(`0x${place}`) === word && (BigInt(`0x${mask}`) & bit) !== 0n;
    },
  };
}
