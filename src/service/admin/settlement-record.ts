import { noTransaction, type Settlement } from "../../ledger/settlement.ts";
import { nonceMember } from "../../methods/method.ts";

/** The columns of `settlements list --csv`, in order; null for an empty value. */
const columns = {
  id: ({ id }) => id,
  organizationId: ({ organizationId }) => organizationId,
  state: ({ state }) => state,
  network: ({ network }) => network,
  asset: ({ asset }) => asset,
  payer: ({ payer }) => payer,
  [nonceMember]: ({ nonce }) => nonce,
  value: ({ amount }) => `${amount}`,
  maximum: ({ maximum, amount }) => `${maximum ?? amount}`,
  recipient: ({ recipient }) => recipient,
  operator: ({ operator }) => operator,
  txNonce: ({ txNonce }) => `${txNonce}`,
  transaction: ({ transactionHash }) => (transactionHash === noTransaction ? "" : transactionHash),
  blockNumber: ({ blockNumber }) => blockNumber?.toString() ?? null,
  blockHash: ({ blockHash }) => blockHash,
  failure: ({ failure }) => failure,
  claimedAt: ({ claimedAt }) => isoTime(claimedAt),
  concludedAt: ({ concludedAt }) => isoTime(concludedAt),
  deliveredAt: ({ deliveredAt }) => isoTime(deliveredAt),
} as const satisfies Readonly<Record<string, (settlement: Settlement) => string | null>>;

const isoTime = (time: number | null) => (time === null ? null : new Date(time).toISOString());

export const settlementColumns = Object.keys(columns);

/** A settlement as shown to operators, without its signature. */
export function settlementAsRecord(settlement: Settlement): Record<keyof typeof columns, string | null> {
  return Object.fromEntries(Object.entries(columns).map(([name, read]) => [name, read(settlement)])) as never;
}
