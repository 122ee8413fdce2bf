import type { Chain, ChainQueries } from "../../../chain/chain.ts";
import { estimateFees } from "../../../chain/fees.ts";
import type { Receipt } from "../../../chain/logs-and-receipts.ts";
import type { Hex } from "../../../protocol/hex.ts";
import { type SettleCall, type Settling, usageOf } from "../../on-chain/settling.ts";
import type { VoucherClaim } from "../channel.ts";
import { identifyByContent } from "../identify.ts";
import { ownedChannels } from "../owners.ts";
import { type ClaimPayload, channelMethods, claimOf } from "../payloads.ts";
import { claimFails, claimReverts, type FitsTransaction, planClaim } from "../plan-claim.ts";
import { describeChannelRevert, settledAlone, unknownToTests } from "./actions.ts";
import { claimCall, claimGas, rowGas, sourceOf } from "./chain-source.ts";
import { channelEvents } from "./channel-events.ts";
import { readChannels } from "./channel-state.ts";

/* Settles claims. Each row that was due must have its event in the receipt. */

/** The gas for rows by plain accounts: the first one uses 77,000, each further one 25,000 including calldata. */
const plainGas = (rows: readonly VoucherClaim[]) => 80_000n + 30_000n * BigInt(Math.max(rows.length - 1, 0));

const transactionOf = ({ payment }: SettleCall) => {
  const { claims, signature } = claimOf(payment);
  return claimCall(claims, signature);
};

/** The channels of due rows that a receipt does not prove to be claimed. */
export function unclaimedIn(
  receipt: Receipt,
  { claims, ids = [], gains = [] }: Pick<ClaimPayload, "claims" | "ids" | "gains">,
): readonly Hex[] {
  const claimed = channelEvents(receipt).filter(({ name }) => name === "Claimed");
  return ids.filter((id, index) => {
    const total = claims[index]?.totalClaimed;
    const isShown = claimed.some(({ key, amounts }) => key === id && amounts[1] === total);
    return (gains[index] ?? 0n) > 0n && !isShown;
  });
}

/** Returns true if nothing is left to claim. */
async function isClaimed({ reader }: Pick<ChainQueries, "reader">, { claims, ids = [] }: ClaimPayload) {
  if (ids.length === 0) return false;
  const states = await readChannels({ reader }, ids);
  return states.every(({ totalClaimed }, index) => totalClaimed >= (claims[index]?.totalClaimed ?? 0n));
}

/** A placeholder for a plain signature, to estimate costs. */
const someSignature: Hex = `0x${"ff".repeat(65)}`;

async function limitCost(chain: Chain): Promise<FitsTransaction | undefined> {
  const { network } = chain;
  const { maxTransactionCost } = network;
  if (maxTransactionCost === undefined) return undefined;
  const [head, tip] = await Promise.all([chain.head(), chain.suggestedTip()]);
  const { maxFeePerGas } = estimateFees(head, network, tip);
  return (rows) => claimCall(rows, someSignature).gas * maxFeePerGas <= maxTransactionCost;
}

export const claimSettling: Settling = {
  method: channelMethods.claim,
  identify: identifyByContent,
  async plan(chain, call) {
    const payment = await planClaim(sourceOf(chain, call.id), call.payment, await limitCost(chain));
    if ("reason" in payment) return payment;
    const planned = { ...call, payment };
    return { call: planned, transaction: transactionOf(planned) };
  },
  ...settledAlone(transactionOf),
  ...unknownToTests,
  usual: usageOf(80_000n, { most: claimGas + rowGas, bytes: 676 }),
  gasOf: ({ payment }) => plainGas(claimOf(payment).claims),

  prove: (receipt) => ({
    find({ payment }) {
      const missing = unclaimedIn(receipt, claimOf(payment));
      if (missing.length === 0) return { settled: true };
      return { settled: false, failure: `not claimed by this transaction: ${missing.join(", ")}` };
    },
  }),
  // If others have claimed these rows, this claim fails, and the shop learns that when it asks again.
  findPayout: () => Promise.resolve(null),
  stateOf: async (chain, { payment }) => ({ used: await isClaimed(chain, claimOf(payment)) }),
  explain: (_chain, _call, revert) => Promise.resolve(claimReverts(describeChannelRevert(revert))),
  isUsed: () => Promise.resolve(false),

  channels: {
    ownedBy: ownedChannels,
    recordOf({ payment }) {
      const { claims, ids = [], gains = [] } = claimOf(payment);
      const moves = ids.map((channel, index) => ({
        ...({ kind: "claim", channel } as const),
        amount: claims[index]?.totalClaimed ?? 0n,
      }));
      return {
        moved: gains.reduce((sum, gain) => sum + gain, 0n),
        moves: moves.filter((_, index) => (gains[index] ?? 0n) > 0n),
      };
    },
  },

  describeSettled(_chain, { payment }, { hash }) {
    const { rejected } = claimOf(payment);
    const invalid =
      rejected.length === 0 ? undefined : claimFails(rejected, `; the others were claimed by ${hash}`);
    return Promise.resolve({ invalid });
  },
};
