import type { Chain, Simulation } from "../../src/chain/chain.ts";
import { exactEip3009Settling } from "../../src/methods/exact-eip3009/on-chain/eip3009-settling.ts";
import type { SettleCall } from "../../src/methods/on-chain/settling.ts";

/** Simulates settling a payment now. */
export async function simulateSettle(
  chain: Chain,
  call: SettleCall,
  options: { withFunds: boolean; withPayerCode?: boolean },
): Promise<Simulation> {
  const { payer, asset } = call.payment;
  const plan = await exactEip3009Settling.plan(chain, call);
  if ("reason" in plan) throw new Error("a payment by EIP-3009 is always planned");
  const { transaction, effect } = plan;
  return chain.simulate(transaction, { payer, asset, id: call.id, effect, ...options });
}
