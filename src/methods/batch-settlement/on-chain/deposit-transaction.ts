import type { Effect, Transaction } from "../../../chain/chain.ts";
import { calldataGas } from "../../../chain/fees.ts";
import { type SignedPayment, tokenSignature, unwrapErc6492 } from "../../../protocol/signed-payment.ts";
import { approvalOf } from "../../approval.ts";
import type { SettleCall } from "../../on-chain/settling.ts";
import { erc3009CollectorAddress, multicall3Address, permit2CollectorAddress } from "../contracts.ts";
import { depositOf } from "../payloads.ts";
import { contractCall } from "./actions.ts";
import { encodeCalls, encodeDeposit, encodeErc3009Data, encodePermit2Data } from "./channel-calls.ts";
import { balanceIn } from "./channel-state.ts";

/** Includes the gas that a wallet's code may burn to check a signature, as for other payments. It uses 150,000. */
export const depositGas = 450_000n;

/** The extra gas for an EIP-2612 approval that is submitted with a deposit, as for other Permit2 payments. */
const approvalGas = 80_000n;

/** The extra gas for a wallet that is deployed first, as for other payments. */
const deployGas = 1_150_000n;

/** The call to the escrow alone, without a wallet deployment. */
export function depositCall(payment: SignedPayment): Transaction {
  const { config, salt } = depositOf(payment);
  const { limit, nonce, window } = payment;
  const signature = tokenSignature(payment.signature);
  const known = salt === undefined ? approvalOf(payment) : undefined;
  const approval = known === "malformed" ? undefined : known;
  const data =
    salt === undefined
      ? encodePermit2Data({ nonce, deadline: window.last }, signature, approval)
      : encodeErc3009Data({ validAfter: window.first - 1n, validBefore: window.last + 1n, salt }, signature);
  const collector = salt === undefined ? permit2CollectorAddress : erc3009CollectorAddress;
  const call = encodeDeposit(config, { amount: limit, collector, data });
  return contractCall(call, depositGas + (approval === undefined ? 0n : approvalGas));
}

/** The call that deploys the payer's wallet (ERC-6492), if the signature contains one. */
export function deployment({ signature }: Pick<SignedPayment, "signature">): Transaction | undefined {
  const wallet = unwrapErc6492(signature);
  return wallet && { to: wallet.factory, data: wallet.factoryCalldata, gas: deployGas };
}

/**
 * The transaction of a deposit. If needed, Multicall3 deploys the wallet first. That is safe: anyone may deposit, and
 * Multicall3 has no special rights. The factory call may fail, because somebody else may have deployed the wallet.
 */
export function depositTransaction({ payment }: Pick<SettleCall, "payment">): Transaction {
  const deposit = depositCall(payment);
  const first = deployment(payment);
  if (first === undefined) return deposit;
  const data = encodeCalls([
    { ...first, mayFail: true },
    { ...deposit, mayFail: false },
  ]);
  return { to: multicall3Address, data, gas: deployGas + depositGas + calldataGas(data) };
}

/** The effect of a deposit with a deployment: on a chain without Multicall3, the transaction would silently do nothing. */
export function depositEffect(payment: SignedPayment, { to, data, gas }: Transaction): Effect | undefined {
  if (deployment(payment) === undefined) return undefined;
  const held = balanceIn(depositOf(payment).voucher.channelId);
  return {
    views: [held, { target: to, data, gas: Number(gas), changes: true }, held],
    isThere([before, , after]) {
      if (before?.word === undefined || after?.word === undefined) return false;
      return BigInt(after.word) - BigInt(before.word) === payment.limit;
    },
  };
}
