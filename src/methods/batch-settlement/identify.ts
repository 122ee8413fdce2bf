import { keccak256, sameAddress, uintWord } from "../../protocol/hex.ts";
import { usualMaxValiditySeconds } from "../../protocol/refusals.ts";
import type { SignedPayment } from "../../protocol/signed-payment.ts";
import type { KnownActions } from "../actions.ts";
import type { ChannelSource } from "./channel-source.ts";
import { withPayload } from "./payloads.ts";

/** How long an action is tried before giving up, in seconds; actions do not expire by themselves. */
const actionSeconds = 3_600n;

/**
 * Identifies a repeatable request by its content: returns the first open request with that content, or a new one if all
 * have been answered. So concurrent requests are one, and a later one is judged by the chain's state at that time.
 *
 * @param source undefined if the network is not served: then the payment is returned as it is
 */
export async function identifyByContent(
  source: Pick<ChannelSource, "head" | "network"> | undefined,
  payment: SignedPayment,
  { isClosed }: Pick<KnownActions, "isClosed">,
): Promise<SignedPayment> {
  if (source === undefined) return payment;
  const { head, network } = source;
  const { timestamp } = await head();
  const { maxValiditySeconds = usualMaxValiditySeconds } = network;
  const seconds = maxValiditySeconds < actionSeconds ? maxValiditySeconds : actionSeconds;
  const window = { first: 0n, last: timestamp + seconds - 1n };
  for (let earlier = 0n; ; earlier++) {
    const nonce = earlier === 0n ? payment.nonce : keccak256(`${payment.nonce}${uintWord(earlier)}`);
    const action = { ...payment, nonce, window };
    if (!(await isClosed(action))) return action;
  }
}

/**
 * Identifies the payout of what is owed now. If nothing is owed, returns the payout whose success was not delivered yet, if
 * there is one. Otherwise reads again at the block of the newest settlement, which the node may not have seen yet.
 */
export async function identifyPayout(
  source: Pick<ChannelSource, "head" | "network" | "readReceiver"> | undefined,
  payment: SignedPayment,
  known: KnownActions,
): Promise<SignedPayment> {
  const { payTo, asset } = payment;
  let { claimed, settled } = (await source?.readReceiver(payTo, asset)) ?? { claimed: 0n, settled: 0n };
  if (claimed === settled) {
    const recent = (await known.recent()).filter((one) => sameAddress(one.asset, asset));
    const open = recent.find(({ method, isOpen }) => method === payment.method && isOpen);
    if (open !== undefined) return { ...payment, nonce: open.nonce };
    if (source === undefined) return payment;
    const { number } = await source.head();
    const block = recent.reduce(
      (most, { blockNumber }) => (blockNumber !== null && blockNumber > most ? blockNumber : most),
      number,
    );
    ({ claimed, settled } = await source.readReceiver(payTo, asset, block));
  }
  const nonce = keccak256(`${payment.nonce}${uintWord(claimed)}${uintWord(settled)}`);
  return identifyByContent(source, withPayload({ ...payment, nonce }, { owed: claimed - settled }), known);
}
