import { type Invalid, invalid } from "../protocol/catalogue.ts";
import type { GasSponsoring, ServedNetwork } from "../protocol/checks.ts";
import { type Address, checksumAddress, type Hex, isAddress, sameAddress } from "../protocol/hex.ts";
import { readEcdsaSignature, type SignedPayment } from "../protocol/signed-payment.ts";
import { type ForeignTransaction, readSignedTransaction } from "../protocol/signed-transaction.ts";
import { parseUint256, propertyOf } from "../protocol/wire-values.ts";
import { type Approval, approvalExtension, approvalOf, isFirstVersion } from "./approval.ts";
import { permit2Address } from "./permit2-domain.ts";

/*
 * A Permit2 approval that accompanies a payment as a transaction that the payer has signed but not sent, for tokens
 * without EIP-2612. Source: the x402 extension `erc20ApprovalGasSponsoring`.
 */

/** The key of the extension in `paymentPayload.extensions`. */
export const transactionExtension: GasSponsoring = "erc20ApprovalGasSponsoring";

/** The path of its fields, for messages. */
const at = `extensions.${transactionExtension}.info`;
export const ofTransaction = `${at}.signedTransaction`;

/** The fields as received: `from` is the claimed sender, `raw` the transaction before parsing. */
export type ApprovalTransaction = { from: Address; asset: Address; spender: Address; raw: string };

export const transactionMembers = [
  "from",
  "asset",
  "spender",
  "amount",
  "signedTransaction",
  "version",
] as const;

/** The maximum length of a stored transaction, in characters; every readable one is shorter. */
const mostKept = 4_096;

/** The fields to store with the payment: those received, or a value that parses as malformed again. */
export function keptTransaction(extensions: unknown): unknown {
  const info = propertyOf(propertyOf(extensions, transactionExtension), "info");
  // Clients that sign no approval echo the shop's declaration.
  if (propertyOf(info, "signedTransaction") === undefined) return undefined;
  if (parseInfo(info) === undefined) return "malformed";
  return Object.fromEntries(transactionMembers.map((name) => [name, propertyOf(info, name)]));
}

/** The approval transaction that came with a payment, if any. */
export function approvalTransactionOf({
  payload,
}: Pick<SignedPayment, "payload">): ApprovalTransaction | "malformed" | undefined {
  const info = payload === null ? undefined : propertyOf(JSON.parse(payload), "approvalTransaction");
  return info === undefined ? undefined : (parseInfo(info) ?? "malformed");
}

/**
 * The Permit2 approval that came with a payment and that the network supports. If both kinds came, EIP-2612 wins, as
 * with public facilitators.
 */
export function broughtApproval(
  payment: Pick<SignedPayment, "payload" | "nonceSpace">,
  { gasSponsoring = [] }: Pick<ServedNetwork, "gasSponsoring">,
): {
  approval?: Approval | "malformed" | undefined;
  transaction?: ApprovalTransaction | "malformed" | undefined;
} {
  // The payloads of other methods are none of our business.
  if (!sameAddress(payment.nonceSpace, permit2Address)) return {};
  const approval = gasSponsoring.includes(approvalExtension) ? approvalOf(payment) : undefined;
  if (approval !== undefined) return { approval };
  return gasSponsoring.includes(transactionExtension) ? { transaction: approvalTransactionOf(payment) } : {};
}

function parseInfo(info: unknown): ApprovalTransaction | undefined {
  const member = (name: (typeof transactionMembers)[number]) => propertyOf(info, name);
  const [from, asset, spender] = [member("from"), member("asset"), member("spender")];
  const [amount, raw] = [member("amount"), member("signedTransaction")];
  if (!isAddress(from) || !isAddress(asset) || !isAddress(spender)) return undefined;
  if (!isFirstVersion(member("version"))) return undefined;
  if (typeof amount !== "string" || parseUint256(amount) === null) return undefined;
  if (typeof raw !== "string" || !/^0x[0-9a-fA-F]*$/.test(raw) || raw.length > mostKept) return undefined;
  return { from, asset, spender, raw };
}

/** The selector of `approve(address,uint256)`. */
export const approveSelector: Hex = "0x095ea7b3";

/**
 * The accepted gas limits. An approval uses about 50,000, or 60,000 behind a proxy; public clients set 70,000. Below
 * `least`, the limit does not even cover the transaction and its calldata.
 */
const gasLimits = { least: 30_000n, most: 150_000n } as const;

/** A number from the chain, or a placeholder if it is not known beforehand. */
type Shown = bigint | number | string;

export const transactionRefusals = {
  malformed: () =>
    invalid(
      "approval_transaction_malformed",
      `${at} needs from, asset and spender (addresses), amount (a decimal string), signedTransaction (bytes) and version "1"`,
    ),
  ofOtherPayer: (from: Address, payer: Address) =>
    invalid("approval_transaction_of_other_payer", `${at}.from is ${from}, but must be the payer ${payer}`),
  ofOtherToken: (asset: Address, wanted: Address) =>
    invalid(
      "approval_transaction_of_other_token",
      `${at}.asset is ${asset}, but must be the token ${wanted}`,
    ),
  forOtherSpender: (spender: Address) =>
    invalid(
      "approval_transaction_for_other_spender",
      `${at}.spender is ${spender}, but must be Permit2, ${permit2Address}`,
    ),
  unreadable: () =>
    invalid(
      "approval_transaction_unreadable",
      `${ofTransaction} is no signed transaction of type 2, 1 or 0 for one chain (EIP-155) without an access list`,
    ),
  toOtherContract: (to: Address, asset: Address) =>
    invalid(
      "approval_transaction_to_other",
      `${ofTransaction} calls ${to}, but must call the token ${asset}`,
    ),
  otherCall: (data: Hex) =>
    invalid(
      "approval_transaction_of_other_call",
      `${ofTransaction} calls ${data.slice(0, 10)}, but must call approve, ${approveSelector}`,
    ),
  badCall: () =>
    invalid(
      "approval_transaction_call_malformed",
      `${ofTransaction} has other calldata than approve(address,uint256) of a spender and an amount`,
    ),
  approvesOther: (spender: Address) =>
    invalid(
      "approval_transaction_approves_other",
      `${ofTransaction} approves ${spender}, but must approve Permit2, ${permit2Address}`,
    ),
  approvesLess: (amount: bigint, limit: bigint) =>
    invalid(
      "approval_transaction_approves_less",
      `${ofTransaction} approves ${amount}, and the payment permits ${limit}`,
    ),
  badSignature: () =>
    invalid(
      "approval_transaction_signature_malformed",
      `${ofTransaction} has no signature that the chain could take`,
    ),
  ofOtherSigner: (signer: Address, payer: Address) =>
    invalid(
      "approval_transaction_by_other",
      `${ofTransaction} is signed by ${signer}, but must be signed by the payer ${payer}`,
    ),
  ofOtherChain: (chainId: number, wanted: number) =>
    invalid(
      "approval_transaction_not_sent",
      `${ofTransaction} is for chain ${chainId}, but must be for ${wanted}`,
    ),
  sendsCoins: (value: bigint) =>
    invalid("approval_transaction_not_sent", `${ofTransaction} sends ${value} wei along, but must send none`),
  gasLimit: (gas: bigint) =>
    invalid(
      "approval_transaction_not_sent",
      `${ofTransaction} has a gas limit of ${gas}, but must have from ${gasLimits.least} to ${gasLimits.most}`,
    ),
  feeTooHigh: (fee: bigint, most: Shown) =>
    invalid(
      "approval_transaction_not_sent",
      `${ofTransaction} offers ${fee} wei per gas, and the facilitator takes ${most} at most`,
    ),
  feeTooLow: (fee: bigint, least: Shown) =>
    invalid(
      "approval_transaction_not_sent",
      `${ofTransaction} offers ${fee} wei per gas, and blocks ask for ${least} at the moment`,
    ),
  otherNonce: (nonce: number, next: Shown) =>
    invalid(
      "approval_transaction_not_sent",
      `${ofTransaction} has the nonce ${nonce}, and the payer's next one is ${next}`,
      "Sign the approval again",
    ),
  refusedByToken: (why: string) =>
    invalid("approval_transaction_fails", `The token refuses the approval in ${ofTransaction}: ${why}`),
} as const satisfies Record<string, (...facts: never[]) => Invalid>;

/** Recovers the signer of a digest from a plain ECDSA signature; undefined if the signature is invalid. */
type RecoverNow = (digest: Hex, signature: Hex) => Address | undefined;

/**
 * Checks an approval without looking at the chain's state. Returns the transaction, or the first problem. The checks and
 * their order are those of public facilitators; checks that these do not make come last.
 */
export function checkTransaction(
  approval: ApprovalTransaction | "malformed",
  { payer, asset, limit }: Pick<SignedPayment, "payer" | "asset" | "limit">,
  { chainId, maxFeePerGas }: { chainId: number; maxFeePerGas: bigint },
  recover: RecoverNow,
): ForeignTransaction | Invalid {
  if (approval === "malformed") return transactionRefusals.malformed();
  const { from, spender, raw } = approval;
  if (!sameAddress(from, payer)) return transactionRefusals.ofOtherPayer(from, payer);
  if (!sameAddress(approval.asset, asset)) return transactionRefusals.ofOtherToken(approval.asset, asset);
  if (!sameAddress(spender, permit2Address)) return transactionRefusals.forOtherSpender(spender);
  const transaction = readSignedTransaction(raw);
  if (transaction === undefined) return transactionRefusals.unreadable();
  const { to, data, digest, signature } = transaction;
  if (!sameAddress(to, asset)) return transactionRefusals.toOtherContract(checksumAddress(to), asset);
  if (!data.startsWith(approveSelector)) return transactionRefusals.otherCall(data);
  const call = readApprove(data);
  if (call === undefined) return transactionRefusals.badCall();
  if (!sameAddress(call.spender, permit2Address))
    return transactionRefusals.approvesOther(checksumAddress(call.spender));
  const signer = readEcdsaSignature(signature) && recover(digest, signature);
  if (signer === undefined) return transactionRefusals.badSignature();
  if (!sameAddress(signer, payer)) return transactionRefusals.ofOtherSigner(checksumAddress(signer), payer);
  if (call.amount < limit) return transactionRefusals.approvesLess(call.amount, limit);
  return whyNotSent(transaction, { chainId, maxFeePerGas }) ?? transaction;
}

/** Why the facilitator does not send the transaction, although it is a valid approval; otherwise undefined. */
function whyNotSent(
  { chainId, value, gas, maxFeePerGas: fee, maxPriorityFeePerGas: tip }: ForeignTransaction,
  network: { chainId: number; maxFeePerGas: bigint },
): Invalid | undefined {
  if (chainId !== network.chainId) return transactionRefusals.ofOtherChain(chainId, network.chainId);
  if (value !== 0n) return transactionRefusals.sendsCoins(value);
  if (gas < gasLimits.least || gas > gasLimits.most) return transactionRefusals.gasLimit(gas);
  if (fee > network.maxFeePerGas) return transactionRefusals.feeTooHigh(fee, network.maxFeePerGas);
  // Nodes reject a transaction whose tip is above its maximum fee.
  return tip > fee ? transactionRefusals.feeTooLow(fee, tip) : undefined;
}

/** The amount that a transaction approves, in the token's smallest unit; 0 if it is not an approval. */
export function approvedBy({ data }: Pick<ForeignTransaction, "data">): bigint {
  return readApprove(data)?.amount ?? 0n;
}

function readApprove(data: Hex): { spender: Address; amount: bigint } | undefined {
  const words = data.slice(approveSelector.length);
  if (words.length !== 128 || !words.startsWith("0".repeat(24))) return undefined;
  return { spender: `0x${words.slice(24, 64)}`, amount: BigInt(`0x${words.slice(64)}`) };
}
