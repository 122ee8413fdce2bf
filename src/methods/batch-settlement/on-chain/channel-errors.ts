import { selector } from "../../../chain/views.ts";
import type { Hex } from "../../../protocol/hex.ts";

/** The errors of the settlement contract, with advice for those that shops and buyers run into. */
const errors: Readonly<Record<string, string>> = {
  ClaimExceedsBalance:
    "A row claims more than its channel holds: a withdrawal or a refund has taken it. Claim at most the balance, and leave that row out of the batch.",
  ClaimExceedsCeiling: "A row claims more than its voucher allows. Claim with the newest voucher, or less.",
  InvalidSignature:
    "A voucher is not signed by the channel's payerAuthorizer, or the batch or refund not by its receiverAuthorizer.",
  NotReceiverAuthorizer: "Rows of one claim have different receiverAuthorizers. Claim them apart.",
  NotAuthorizedToClaim:
    "Only the receiver or its receiverAuthorizer may call claim; others need its signature.",
  NotAuthorizedToRefund:
    "Only the receiver or its receiverAuthorizer may call refund; others need its signature.",
  InvalidRefundNonce:
    "The refund was done already, or is signed with an old nonce. Read refundNonce of the channel.",
  WithdrawDelayNotElapsed: "The withdrawal was announced less than withdrawDelay ago. Finalize it later.",
  WithdrawalAlreadyPending: "The payer has announced a withdrawal before. Finalize that one.",
  WithdrawalNotPending: "No withdrawal is announced, or a refund has cancelled it. Announce one first.",
  NothingToWithdraw: "All that the channel holds is claimed.",
  WithdrawAmountExceedsAvailable: "Less than that is left behind what is claimed.",
  NotAuthorizedToFinalizeWithdraw: "Only the payer or its payerAuthorizer may finalize a withdrawal.",
  DepositCollectionFailed:
    "The token brought another amount than the deposit: tokens that take a fee cannot be deposited.",
  WithdrawDelayOutOfRange: "withdrawDelay must be from 900 to 2592000 seconds.",
  InvalidChannel: "An address of channelConfig is zero, or the caller is not its payer.",
  InvalidCollector: "The collector of the deposit is zero.",
  ZeroDeposit: "",
  DepositOverflow: "",
  EmptyBatch: "",
  ZeroRefund: "",
  ReentrancyGuardReentrantCall: "",
  FailedCall: "",
  OnlyX402BatchSettlement: "Collectors are called by the escrow alone.",
  Permit2612AmountMismatch: "The EIP-2612 permit is for another amount than the deposit.",
  ECDSAInvalidSignature: "A signature recovers to no address.",
  "ECDSAInvalidSignatureLength(uint256)": "Vouchers with a payerAuthorizer have signatures of 65 bytes.",
  "ECDSAInvalidSignatureS(bytes32)": "A signature has s in the upper half.",
  "SafeERC20FailedOperation(address)":
    "The token refused the transfer: it is paused, or an account is blacklisted.",
};

const bySelector = new Map<string, { name: string; advice: string }>(
  Object.entries(errors).map(([error, advice]) => {
    const [name = ""] = error.split("(");
    return [selector(name === error ? `${error}()` : error), { name, advice }];
  }),
);

/** An error of the contracts, and advice on it; undefined for any other error. */
export function channelErrorOf(data: Hex): { name: string; advice: string } | undefined {
  return bySelector.get(data.slice(0, 10).toLowerCase());
}

/** The first error of the contracts in a text, by name or as revert data, which clients without the ABI print. */
export function channelErrorIn(text: string): { name: string; advice: string } | undefined {
  const data = Array.from(text.matchAll(/0x([0-9a-f]{8})/gi), ([, digits]): Hex => `0x${digits}`);
  const named = [...bySelector.values()].find(
    ({ name, advice }) => advice !== "" && new RegExp(`\\b${name}\\b`).test(text),
  );
  return named ?? data.map(channelErrorOf).find((one) => one !== undefined);
}
