import { encodeFunctionData, parseAbi } from "viem";
import { authorizationOf } from "../../methods/exact-eip3009/eip3009-payload.ts";
import { encodeCancellation, encodeSubmission } from "../../methods/exact-eip3009/on-chain/token-calls.ts";
import { encodeProxySettle } from "../../methods/permit2/on-chain/permit2-calls.ts";
import { bitOf } from "../../methods/permit2/on-chain/permit2-state.ts";
import { permit2Address } from "../../methods/permit2/permit.ts";
import { permitOf } from "../../methods/permit2/permit2-payload.ts";
import type { Address, Hex } from "../../protocol/hex.ts";
import type { Asset } from "../../protocol/networks.ts";
import type { SignedPayment } from "../../protocol/signed-payment.ts";
import type { WayName } from "./offers.ts";

const permit2Abi = parseAbi(["function invalidateUnorderedNonces(uint256 word, uint256 mask)"]);

/** A call of a contract; `sender` is the only account that may make it, where there is one. */
export type ContractCall = { to: Address; data: Hex; sender?: Address | undefined };

/** The call that submits a payment without the facilitator, as everybody can who holds it; of “upto” only whom it names. */
export function submissionOf(way: WayName, payment: SignedPayment): ContractCall {
  if (way === "eip3009") {
    const data = encodeSubmission(authorizationOf(payment), payment.signature);
    return { to: payment.asset, data };
  }
  const permit = permitOf(payment);
  const data = encodeProxySettle(permit, payment.signature, permit.amount);
  return { to: permit.spender, data, sender: permit.facilitator };
}

/** The call by which a payer makes a payment invalid. */
export async function cancellationOf(
  way: WayName,
  payment: SignedPayment,
  { privateKey, asset, chainId }: { privateKey: Hex; asset: Asset; chainId: number },
): Promise<ContractCall> {
  if (way === "eip3009") {
    const data = await encodeCancellation(privateKey, { asset, chainId }, payment.nonce);
    return { to: payment.asset, data };
  }
  const { word, bit } = bitOf(payment);
  const data = encodeFunctionData({
    abi: permit2Abi,
    functionName: "invalidateUnorderedNonces",
    args: [word, bit],
  });
  return { to: permit2Address, data, sender: payment.payer };
}
