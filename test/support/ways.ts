import { type Payer, signPayment } from "../../src/harness/control/pay.ts";
import type { HarnessChain } from "../../src/harness/setup/prepare-chain.ts";
import type { Address, Hex } from "../../src/protocol/hex.ts";
import type { X402Version } from "../../src/protocol/requests.ts";
import { settlementId } from "../../src/protocol/signed-payment.ts";
import { harnessAccounts } from "../../src/published/accounts.ts";
import type { Body } from "./service.ts";

/** A way to pay, and where the money goes: through the facilitator contract, or straight to the recipient. */
export type Way = {
  readonly name: string;
  readonly straight: boolean;
  readonly method: "eip3009" | "permit2";
  /** Of scheme “upto”: whether settle takes some of the maximum, or nothing. */
  readonly takes?: "some" | "nothing";
};

/** The ways that move money. */
export const movingWays: readonly [Way, ...Way[]] = [
  { name: "EIP-3009 through the contract", straight: false, method: "eip3009" },
  { name: "EIP-3009 straight", straight: true, method: "eip3009" },
  { name: "Permit2 through the contract", straight: false, method: "permit2" },
  { name: "Permit2 straight", straight: true, method: "permit2" },
  { name: "upto through the contract", straight: false, method: "permit2", takes: "some" },
  { name: "upto straight", straight: true, method: "permit2", takes: "some" },
];

/** Of scheme “upto”: settle takes nothing, and no transaction is made. */
export const zeroWay: Way = {
  name: "upto, nothing of it",
  straight: false,
  method: "permit2",
  takes: "nothing",
};

export const allWays: readonly [Way, ...Way[]] = [...movingWays, zeroWay];

/** A payment to be settled, and what that moves. */
export type WayPayment = {
  readonly way: Way;
  /** Of the settle call. */
  readonly body: Body;
  /** Of the verify call: the same, except where less than the maximum is settled. */
  readonly verifyBody: Body;
  readonly payer: Address;
  /** What is to reach the recipient, in the asset's smallest unit. */
  readonly due: bigint;
  readonly id: Hex;
};

/**
 * Signs a payment of some value in one of the ways. Of scheme “upto” the maximum is twice the value, or the value where nothing
 * is taken.
 *
 * @param payer the test payer `funded` by default, who has approved Permit2
 */
export async function signInWay(
  way: Way,
  {
    chain: { network, asset, rpcUrl, facilitatorContract },
    contract = facilitatorContract,
    recipient = harnessAccounts.recipient.address,
    payer,
    value,
    x402Version,
    validForSeconds,
  }: {
    chain: HarnessChain;
    /** The facilitator contract, where it is not the harness's. */
    contract?: Address;
    recipient?: Address;
    payer?: Payer;
    value: bigint;
    /** Of payments by EIP-3009. */
    x402Version?: X402Version;
    validForSeconds?: number;
  },
): Promise<WayPayment> {
  const { name, caip2, chainId } = network;
  const due = way.takes === "nothing" ? 0n : value;
  const payTo = way.straight ? recipient : contract;
  const running = { chainId, caip2, rpcUrl, asset, facilitatorContract: contract, payTo };
  const { request, settleRequest, payment } = await signPayment(
    { networks: { [name]: running } },
    {
      ...{ network: name, method: way.method, payTo, amount: due },
      ...(way.takes !== undefined && { scheme: "upto", max: way.takes === "some" ? 2n * value : value }),
      ...(payer !== undefined && { payer }),
      ...(x402Version !== undefined && way.method === "eip3009" && { x402Version }),
      ...(validForSeconds !== undefined && { validForSeconds }),
    },
  );
  const { nonceSpace, nonce } = payment;
  const id = settlementId(chainId, nonceSpace, payment.payer, nonce);
  return { way, body: settleRequest, verifyBody: request, payer: payment.payer, due, id };
}
