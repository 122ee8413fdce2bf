import type { ChainQueries } from "../../chain/chain.ts";
import { type LogPlace, type MinedLog, type Receipt, readReceiptsAt } from "../../chain/logs-and-receipts.ts";
import { type Address, addressWord, type Hex } from "../../protocol/hex.ts";
import type { SignedPayment } from "../../protocol/signed-payment.ts";
import { submittedNonce } from "../permit2/on-chain/permit2-calls.ts";
import { readCall } from "../permit2/on-chain/submissions.ts";
import { permit2Address } from "../permit2/permit.ts";
import {
  authorizationKey,
  decodeEvent,
  forwardedTopic,
  permit2ForwardedTopic,
  permit2SettledTopic,
  settledTopic,
  transferTopic,
} from "./events.ts";
import { isTransferTo, type ReceivedTransfer, readReceivedTransfers } from "./payouts.ts";
import type { TransferPlace } from "./settling.ts";

/** Value that reached the facilitator contract outside a settlement and was not paid out by a recovery. */
export type StrandedTransfer = TransferPlace & {
  /** The payer, or the sender of tokens that came without a payment. */
  from: Address;
  value: bigint;
  /** Identifies the payment that brought the value; undefined if none can be shown. */
  payment: Pick<SignedPayment, "nonceSpace" | "nonce"> | undefined;
};

const payoutTopics = [settledTopic, forwardedTopic, permit2SettledTopic, permit2ForwardedTopic] as const;

/**
 * Finds every transfer of an asset to the facilitator contract in the given blocks (both ends inclusive) that is neither part
 * of a settlement nor paid out by a recovery within these blocks, lowest block first. Value that was rescued is still listed,
 * because a rescue does not say which transfers it takes out.
 */
export async function findStrandedTransfers(
  { reader, readLogs, network: { facilitatorContract } }: ChainQueries,
  asset: Address,
  fromBlock: bigint,
  toBlock: bigint,
): Promise<readonly StrandedTransfer[]> {
  const contractTopic: Hex = `0x${addressWord(facilitatorContract)}`;

  const assetTopic: Hex = `0x${addressWord(asset)}`;
  const filters = [
    { address: asset, topics: [transferTopic, null, contractTopic] },
    { address: facilitatorContract, topics: [payoutTopics, assetTopic] },
  ];
  const stranded: StrandedTransfer[] = [];
  const forwarded = new Set<string>();

  for await (const logs of readLogs(filters, fromBlock, toBlock)) {
    for (const log of logs) {
      const event = decodeEvent(log);
      if (event?.name === "Forwarded") forwarded.add(authorizationKey(event));
      if (event?.name === "Permit2Forwarded")
        forwarded.add(authorizationKey({ ...event, token: permit2Address }));
    }
    // Nearly all transfers are settled, so receipts are read only for the rest.
    const receipts = await readReceiptsAt(reader, findUnsettled(logs, asset, facilitatorContract));
    const received = receipts.flatMap((receipt) =>
      readReceivedTransfers(receipt, asset, facilitatorContract).map((transfer) => ({ receipt, transfer })),
    );
    // Transfers of 0 need no allowance: anyone can send them from any account.
    const found = received.filter(({ transfer: { settled, value } }) => !settled && value > 0n);
    stranded.push(...(await Promise.all(found.map(withPayment))));
  }
  return stranded
    .filter(
      ({ from: payer, payment }) =>
        payment === undefined ||
        !forwarded.has(
          authorizationKey({ token: payment.nonceSpace, payer, authorizationNonce: payment.nonce }),
        ),
    )
    .sort((a, b) => Number(a.blockNumber - b.blockNumber) || a.logIndex - b.logIndex);

  async function withPayment({ receipt, transfer }: Received): Promise<StrandedTransfer> {
    const { hash: transactionHash, blockNumber, blockHash } = receipt;
    const { logIndex, from, value, authorizationNonce } = transfer;
    const place = { transactionHash, blockNumber, blockHash, logIndex, from, value };
    if (authorizationNonce !== undefined)
      return { ...place, payment: { nonceSpace: asset, nonce: authorizationNonce } };
    const call = await readCall(reader, transactionHash, undefined);
    const nonce =
      call && submittedNonce(call, { token: asset, amount: value, from, to: facilitatorContract });
    return { ...place, payment: nonce && { nonceSpace: permit2Address, nonce } };
  }
}

type Received = { receipt: Receipt; transfer: ReceivedTransfer };

/** The transactions with more transfers in than settlements. */
function findUnsettled(logs: readonly MinedLog[], asset: Hex, facilitatorContract: Hex): readonly LogPlace[] {
  const balances = new Map<string, { place: LogPlace; left: number }>();
  const count = (place: LogPlace, payer: Hex, value: bigint, by: 1 | -1) => {
    const key = `${place.transactionHash.toLowerCase()} ${payer} ${value}`;
    balances.set(key, { place, left: (balances.get(key)?.left ?? 0) + by });
  };
  for (const log of logs) {
    const event = decodeEvent(log);
    if (event?.name === "Settled" || event?.name === "Permit2Settled")
      count(log, event.payer, event.value, -1);
    else if (event && isTransferTo(event, asset, facilitatorContract) && event.value > 0n)
      count(log, event.from, event.value, 1);
  }
  const left = [...balances.values()].filter((balance) => balance.left > 0);
  return [...new Map(left.map(({ place }) => [place.transactionHash, place])).values()];
}
