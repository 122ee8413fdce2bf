import { privateKeyToAccount } from "viem/accounts";
import { type Payer, signPayment } from "../../src/harness/control/pay.ts";
import type { HarnessChain } from "../../src/harness/setup/prepare-chain.ts";
import type { PayerSigner } from "../../src/methods/permit2/sign-permit.ts";
import { harnessAccounts } from "../../src/payer/accounts.ts";
import { undeployedWalletSalt, walletInitCode } from "../../src/payer/undeployed-wallet.ts";
import { create2Address, create2Deployer } from "../../src/protocol/create2.ts";
import { type Address, type Hex, toHex } from "../../src/protocol/hex.ts";
import type { X402Version } from "../../src/protocol/requests.ts";
import { settlementId, wrapErc6492 } from "../../src/protocol/signed-payment.ts";
import type { Body } from "./service.ts";

/** A way to pay, either through the facilitator contract or directly to the recipient. */
export type Way = {
  readonly name: string;
  readonly straight: boolean;
  readonly method: "eip3009" | "permit2";
  /** For scheme "upto": settle takes some of the maximum, or nothing. */
  readonly takes?: "some" | "nothing";
  /** For the first payment of a payer who has just received the tokens, and has no gas money. */
  readonly from?: "new account" | "new wallet";
  /** For Permit2: the approval that comes with the payment. */
  readonly approval?: true | "transaction";
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

/** Scheme "upto" where settle takes nothing, so no transaction is made. */
export const zeroWay: Way = {
  name: "upto, nothing of it",
  straight: false,
  method: "permit2",
  takes: "nothing",
};

export const allWays: readonly [Way, ...Way[]] = [...movingWays, zeroWay];

/** The ways of new payers: each needs more than a payment, in the transaction that settles it. */
export const firstWays: readonly [Way, ...Way[]] = [
  {
    ...{ name: "Permit2 through the contract, with an approval by EIP-2612", straight: false },
    ...{ method: "permit2", from: "new account", approval: true },
  },
  {
    ...{ name: "upto straight, with an approval by EIP-2612", straight: true, takes: "some" },
    ...{ method: "permit2", from: "new account", approval: true },
  },
  {
    ...{ name: "EIP-3009 through the contract, of a wallet to come", straight: false },
    ...{ method: "eip3009", from: "new wallet" },
  },
  {
    ...{ name: "EIP-3009 straight, of a wallet to come", straight: true },
    ...{ method: "eip3009", from: "new wallet" },
  },
];

/**
 * The payer's own transaction comes before the payment, and the sponsor's before that. Not for chains with
 * reorganizations: one that drops the approval but keeps the payment makes it fail, and nothing is taken
 * (docs/decisions/0040).
 */
export const approvalFirstWay: Way = {
  ...{ name: "Permit2 through the contract, after an approval by a transaction", straight: false },
  ...{ method: "permit2", from: "new account", approval: "transaction" },
};

/** A payment to settle, and what it moves. */
export type WayPayment = {
  readonly way: Way;
  /** The body of the settle call. */
  readonly body: Body;
  /** The body of the verify call; the same, unless less than the maximum is settled. */
  readonly verifyBody: Body;
  readonly payer: Address;
  /** The amount for the recipient, in the asset's smallest unit. */
  readonly due: bigint;
  readonly id: Hex;
};

/** Creates a payer for the first payment in a way, with twice the amount to pay, and no gas money. */
export async function newPayer(
  { from }: Pick<Way, "from">,
  { chain, value }: { chain: HarnessChain; value: bigint },
): Promise<Payer> {
  const key = toHex(crypto.getRandomValues(new Uint8Array(32)));
  const wallet = from === "new wallet" ? walletToCome(key) : undefined;
  const { address } = wallet ?? privateKeyToAccount(key);
  await chain.fund(address, 2n * value);
  return wallet ?? key;
}

/** A wallet that is not deployed yet: its signatures deploy it (ERC-6492). */
function walletToCome(key: Hex): PayerSigner {
  const owner: PayerSigner = privateKeyToAccount(key);
  const initCode = walletInitCode(owner.address);
  const deployment: Hex = `${undeployedWalletSalt}${initCode.slice(2)}`;
  return {
    address: create2Address(undeployedWalletSalt, initCode),
    signTypedData: async (typedData) =>
      wrapErc6492(create2Deployer, deployment, await owner.signTypedData(typedData)),
  };
}

/**
 * Signs a payment in one of the ways. For scheme "upto" the maximum is twice the value, or the value if nothing is
 * taken.
 *
 * @param payer by default a new one if the way needs that, otherwise the test payer `funded`, who has approved Permit2
 */
export async function signInWay(
  way: Way,
  {
    chain,
    contract = chain.facilitatorContract,
    recipient = harnessAccounts.recipient.address,
    payer: given,
    value,
    x402Version,
    validForSeconds,
  }: {
    chain: HarnessChain;
    /** The facilitator contract, if it is not the harness's. */
    contract?: Address;
    recipient?: Address;
    payer?: Payer;
    value: bigint;
    /** For payments by EIP-3009. */
    x402Version?: X402Version;
    validForSeconds?: number;
  },
): Promise<WayPayment> {
  const { network, asset, rpcUrl } = chain;
  const { name, caip2, chainId } = network;
  const payer = given ?? (way.from && (await newPayer(way, { chain, value })));
  const due = way.takes === "nothing" ? 0n : value;
  const payTo = way.straight ? recipient : contract;
  const running = { chainId, caip2, rpcUrl, asset, facilitatorContract: contract, payTo };
  const { request, settleRequest, payment } = await signPayment(
    { networks: { [name]: running } },
    {
      ...{ network: name, method: way.method, payTo, amount: due },
      ...(way.takes !== undefined && { scheme: "upto", max: way.takes === "some" ? 2n * value : value }),
      ...(payer !== undefined && { payer }),
      ...(way.approval !== undefined && { approval: way.approval }),
      ...(x402Version !== undefined && way.method === "eip3009" && { x402Version }),
      ...(validForSeconds !== undefined && { validForSeconds }),
    },
  );
  const { nonceSpace, nonce } = payment;
  const id = settlementId(chainId, nonceSpace, payment.payer, nonce);
  return { way, body: settleRequest, verifyBody: request, payer: payment.payer, due, id };
}
