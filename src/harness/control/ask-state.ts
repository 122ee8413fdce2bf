import { askPayerState, type PayerState } from "../../methods/exact-eip3009/on-chain/state.ts";
import type { UsableAuthorization } from "./ask-use.ts";
import { askHarness } from "./find-harness.ts";
import { askNode } from "./readable-chain.ts";

/**
 * What stands in the way of a payment by the newest block of the chain of an `up`.
 *
 * @param origin such as `http://127.0.0.1:4402`, without `/v1`
 * @returns undefined when no chain can be asked there, as at `mock` and `serve`, or it does not say
 */
export async function askState(
  origin: string,
  { network, asset, payment }: Omit<UsableAuthorization, "settlementId">,
): Promise<PayerState | undefined> {
  try {
    const chain = (await askHarness(origin))?.networks[network];
    return chain && (await askPayerState(askNode(chain.rpcUrl), { ...payment, asset }, "latest"));
  } catch {
    // Its nodes may listen on another machine than this, or the token is none.
    return undefined;
  }
}
