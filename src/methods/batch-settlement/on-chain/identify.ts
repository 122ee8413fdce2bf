import type { Chain } from "../../../chain/chain.ts";
import { keccak256, uintWord } from "../../../protocol/hex.ts";
import { usualMaxValiditySeconds } from "../../../protocol/refusals.ts";
import type { SignedPayment } from "../../../protocol/signed-payment.ts";
import type { KnownActions } from "../../on-chain/settling.ts";

/** How long an action is tried before it is given up, in seconds. Nothing of it expires by itself. */
const actionSeconds = 3_600n;

/**
 * {@link Settling.identify} by what is asked for: the first request for it that is open, or a new one behind those that have been
 * answered. So requests at the same time are one, and a later one is judged by what the chain says then.
 */
export async function identifyByContent(
  chain: Chain,
  payment: SignedPayment,
  { isClosed }: Pick<KnownActions, "isClosed">,
): Promise<SignedPayment> {
  const { timestamp } = await chain.head();
  const { maxValiditySeconds = usualMaxValiditySeconds } = chain.network;
  const seconds = maxValiditySeconds < actionSeconds ? maxValiditySeconds : actionSeconds;
  const window = { first: 0n, last: timestamp + seconds - 1n };
  for (let earlier = 0n; ; earlier++) {
    const nonce = earlier === 0n ? payment.nonce : keccak256(`${payment.nonce}${uintWord(earlier)}`);
    const action = { ...payment, nonce, window };
    if (!(await isClosed(action))) return action;
  }
}
