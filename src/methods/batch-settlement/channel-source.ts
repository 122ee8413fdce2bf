import type { Address, Hex } from "../../protocol/hex.ts";
import type { VoucherClaim } from "./channel.ts";

/*
 * The data that channel checks need. The service reads it from a chain, the fixtures from a model of the settlement contract.
 */

/** A channel's state in the contract. Amounts in the token's smallest unit; `withdrawRequestedAt` in unix seconds, or 0. */
export type ChannelState = {
  balance: bigint;
  totalClaimed: bigint;
  withdrawRequestedAt: number;
  refundNonce: bigint;
};

/** The state as JSON for responses. */
export function stateJson(channelId: Hex, state: ChannelState) {
  return {
    channelId,
    balance: `${state.balance}`,
    totalClaimed: `${state.totalClaimed}`,
    withdrawRequestedAt: state.withdrawRequestedAt,
    refundNonce: `${state.refundNonce}`,
  };
}

/** The totals that were claimed for a receiver and paid out to it. */
export type ReceiverState = { claimed: bigint; settled: bigint };

/** Reads channels of a network. The async methods throw if the chain does not answer. */
export type ChannelSource = {
  readonly network: {
    readonly name: string;
    readonly chainId: number;
    /** The accounts that sign claims and refunds for shops. */
    readonly authorizers?: readonly { readonly address: Address; sign(digest: Hex): Hex }[] | undefined;
    readonly maxValiditySeconds?: bigint;
  };
  recover(digest: Hex, signature: Hex): Address | undefined;
  askWallet(account: Address, digest: Hex, signature: Hex): Promise<"no_code" | "accepted" | "refused">;
  head(): Promise<{ number: bigint; timestamp: bigint }>;
  /** Reads channels at the newest block, or at the newest confirmed one, in the given order. */
  readChannels(ids: readonly Hex[], at?: "confirmed"): Promise<readonly ChannelState[]>;
  readReceiver(receiver: Address, token: Address, block?: bigint): Promise<ReceiverState>;
  /**
   * A short reason why a claim would revert; undefined if it would not.
   *
   * @param signature by the authorizer of the rows; without one, the authorizer of the first row is the caller
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
