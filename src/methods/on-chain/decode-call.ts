import { decodeFunctionData, parseAbi } from "viem/utils";
import { x402FacilitatorAbi } from "../../contracts/x402Facilitator.ts";
import { readCodes } from "../../protocol/builder-code.ts";
import { type Hex, uintWord } from "../../protocol/hex.ts";
import type { CallView } from "../call-view.ts";
import { nonceMember } from "../method.ts";

type Authorization = { from: Hex; value: bigint; validAfter: bigint; validBefore: bigint; nonce: Hex };

/** The functions called on a token. Not taken from the generated ABI, which is the mock's. */
const tokenAbi = parseAbi([
  "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)",
]);

type Permit2Payment = { payer: Hex; amount: bigint; validAfter: bigint; deadline: bigint; nonce: bigint };

/**
 * Decodes the payments that a call moves; null for a call that moves none, such as a no-op.
 *
 * @param to the called contract: the facilitator contract, or the token itself
 */
export function decodeCall(to: Hex, input: Hex): CallView | null {
  const view = decodePayments(to, input);
  const codes = readCodes(input);
  return view === null || codes === undefined ? view : { ...view, codes };
}

function decodePayments(to: Hex, input: Hex): CallView | null {
  const decoded = decode(input);
  if (decoded === undefined) return null;
  const { functionName, args } = decoded;
  if (functionName === "transferWithAuthorization") {
    const [from, payee, value, validAfter, validBefore, nonce] = args;
    const payment = viewOf({ from, value, validAfter, validBefore, nonce }, payee);
    return { name: functionName, asset: to, payments: [payment] };
  }
  if (functionName === "settle" || functionName === "forwardReceived") {
    const [asset, authorization, , recipient] = args;
    return { name: functionName, asset, payments: [viewOf(authorization, recipient)] };
  }
  if (functionName === "forwardReceivedWithPermit2") {
    const [asset, payment, recipient] = args;
    // The signed amount: the contract ignores `amount` here.
    const of = permitView({ ...payment, amount: payment.permitted }, recipient);
    return { name: functionName, asset, payments: [of] };
  }
  if (functionName === "settlePermit2" || functionName === "settlePermit2Batch") {
    const groups = functionName === "settlePermit2" ? [args[0]] : args[0];
    const payments = groups.flatMap((group) =>
      group.payments.map((payment) => permitView(payment, group.recipient)),
    );
    // The service settles one token at a time.
    return { name: functionName, asset: groups[0]?.token ?? "", payments };
  }
  if (functionName !== "settleBatch" && functionName !== "transferBatch") return null;
  const [asset, groups] = args;
  const payments = groups.flatMap((group) =>
    group.payments.map(({ authorization }) => viewOf(authorization, group.recipient)),
  );
  return { name: functionName, asset, payments };
}

/** Returns undefined for calldata of another contract. */
function decode(data: Hex) {
  try {
    return decodeFunctionData({ abi: [...x402FacilitatorAbi, ...tokenAbi], data });
  } catch {
    return undefined;
  }
}

function viewOf(authorization: Authorization, recipient: Hex): CallView["payments"][number] {
  const { from, value, validAfter, validBefore, nonce } = authorization;
  return {
    payer: from,
    recipient,
    value: `${value}`,
    [nonceMember]: nonce,
    validAfter: `${validAfter}`,
    validBefore: `${validBefore}`,
  };
}

/** The nonce has the ledger's format. The end of the window is inclusive, as signed. */
function permitView(payment: Permit2Payment, recipient: Hex): CallView["payments"][number] {
  const { payer: from, amount: value, validAfter, deadline: validBefore, nonce } = payment;
  return viewOf({ from, value, validAfter, validBefore, nonce: `0x${uintWord(nonce)}` }, recipient);
}
