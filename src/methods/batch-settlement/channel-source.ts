import type { Address, Hex } from "../../protocol/hex.ts";
import type { VoucherClaim } from "./channel.ts";

/*
 * The questions that judgments of channels ask. A chain answers them in the service; in the fixtures, a model of the settlement contract
 * does.
 */

/** The contract's state of a channel. Amounts in the token's smallest unit; `withdrawRequestedAt` in unix seconds, 0 without one. */
export type ChannelState = {
  balance: bigint;
  totalClaimed: bigint;
  withdrawRequestedAt: number;
  refundNonce: bigint;
};

/** The state as answers have it. */
export function stateJson(channelId: Hex, state: ChannelState) {
  return {
    channelId,
    balance: `${state.balance}`,
    totalClaimed: `${state.totalClaimed}`,
    withdrawRequestedAt: state.withdrawRequestedAt,
    refundNonce: `${state.refundNonce}`,
  };
}

/** The sums that were claimed for a receiver in all, and paid out of that. */
export type ReceiverState = { claimed: bigint; settled: bigint };

/** The questions about the channels of a network. Each function throws if the chain did not answer. */
export type ChannelSource = {
  readonly network: {
    readonly name: string;
    readonly chainId: number;
    /** Sign claims and refunds for shops. */
    readonly authorizers?: readonly { readonly address: Address; sign(digest: Hex): Hex }[] | undefined;
    readonly maxValiditySeconds?: bigint;
  };
  recover(digest: Hex, signature: Hex): Address | undefined;
  askWallet(account: Address, digest: Hex, signature: Hex): Promise<"no_code" | "accepted" | "refused">;
  head(): Promise<{ number: bigint; timestamp: bigint }>;
  /** Channels at the newest block, or at the newest confirmed one, in the given order. */
  readChannels(ids: readonly Hex[], at?: "confirmed"): Promise<readonly ChannelState[]>;
  readReceiver(receiver: Address, token: Address, block?: bigint): Promise<ReceiverState>;
  /**
   * Why a claim of rows would revert, in a few words; undefined where it would not.
   *
   * @param signature of the authorizer of the rows; without one, the authorizer of the first row is the caller
   */
  explainClaim(rows: readonly VoucherClaim[], signature?: Hex): Promise<string | undefined>;
};

/** Reads a channel at the newest block, or at the newest confirmed one. */
export async function readChannel(
  { readChannels }: Pick<ChannelSource, "readChannels">,
  id: Hex,
  at?: "confirmed",
): Promise<ChannelState> {
  const [state] = await readChannels([id], at);
  if (state === undefined) throw new Error("a channel was not read");
  return state;
}
