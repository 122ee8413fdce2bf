import type { ViewCall } from "../../chain/view-calls.ts";
import { balanceOf, isBlacklisted, isPaused } from "../../chain/views.ts";
import { authorizationStateOf } from "../../methods/exact-eip3009/on-chain/views.ts";
import type { UsableAuthorization } from "./ask-use.ts";
import { askHarness } from "./find-harness.ts";
import { askNode } from "./readable-chain.ts";

/** What the token says of a payer and an authorization at the newest block. */
export type PayerState = {
  /** In the token's smallest unit. */
  balance: bigint;
  isBlacklisted: boolean;
  /** Whether all transfers of the token are stopped. */
  isPaused: boolean;
  /** Whether the authorization was used or cancelled, however long ago. */
  isUsed: boolean;
};

/**
 * What stands in the way of a payment by the chain of an `up`.
 *
 * @param origin such as `http://127.0.0.1:4402`, without `/v1`
 * @returns undefined when no chain can be asked there, as at `mock` and `serve`, or it does not say
 */
export async function askState(
  origin: string,
  { network, asset, payment: { payer: from, nonce } }: Omit<UsableAuthorization, "settlementId">,
): Promise<PayerState | undefined> {
  try {
    const chain = (await askHarness(origin))?.networks[network];
    if (chain === undefined) return undefined;
    const ask = askNode(chain.rpcUrl);
    const read = async ({ target: to, data }: ViewCall): Promise<bigint | undefined> => {
      const { result } = await ask("eth_call", { to, data }, "latest");
      return typeof result === "string" && result.length === 66 ? BigInt(result) : undefined;
    };
    const [balance, used, blacklisted, paused] = await Promise.all(
      [
        balanceOf(asset, from),
        authorizationStateOf(asset, from, nonce),
        isBlacklisted(asset, from),
        isPaused(asset),
      ].map(read),
    );
    if (balance === undefined || used === undefined) return undefined;
    // A token without a blacklist, or a pause, has neither.
    return { balance, isUsed: used !== 0n, isBlacklisted: blacklisted === 1n, isPaused: paused === 1n };
  } catch {
    // Its nodes may listen on another machine than this, or the token is none.
    return undefined;
  }
}
