import { decodeFunctionData, parseAbi } from "viem/utils";
import { x402FacilitatorAbi } from "../../../contracts/x402Facilitator.ts";
import type { Hex } from "../../../protocol/hex.ts";
import { nonceMember } from "../../nonce-member.ts";
import type { CallView } from "../call-view.ts";

type Authorization = { from: Hex; value: bigint; validAfter: bigint; validBefore: bigint; nonce: Hex };

/** What a token is called with; not of the generated ABI, which is that of the look-alike. */
const tokenAbi = parseAbi([
  "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)",
]);

/**
 * The payments that a call moves; null for a call that moves none, such as a no-op.
 *
 * @param to what is called: the facilitator contract, or the token itself
 */
export function decodeCall(to: Hex, input: Hex): CallView | null {
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
  if (functionName !== "settleBatch" && functionName !== "transferBatch") return null;
  const [asset, groups] = args;
  const payments = groups.flatMap((group) =>
    group.payments.map(({ authorization }) => viewOf(authorization, group.recipient)),
  );
  return { name: functionName, asset, payments };
}

/** Undefined for calldata of another contract. */
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
    ...{ payer: from, recipient, value: `${value}`, [nonceMember]: nonce },
    ...{ validAfter: `${validAfter}`, validBefore: `${validBefore}` },
  };
}
