import type { Chain, Simulation } from "../../src/chain/chain.ts";
import { exactEip3009Settling } from "../../src/methods/exact-eip3009/on-chain/eip3009-settling.ts";
import type { SettleCall } from "../../src/methods/on-chain/settling.ts";

/** What settling a payment would do now. */
export function simulateSettle(
  chain: Chain,
  call: SettleCall,
  options: { withFunds: boolean; withPayerCode?: boolean },
): Promise<Simulation> {
  const { payer, asset } = call.payment;
  const transaction = exactEip3009Settling.transaction([call], chain.network);
  const effect = exactEip3009Settling.effect?.(call, chain.network);
  return chain.simulate(transaction, { payer, asset, id: call.id, effect, ...options });
}
