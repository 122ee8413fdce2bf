import { decodeFunctionData } from "viem/utils";
import { x402FacilitatorAbi } from "../../../contracts/x402Facilitator.ts";
import type { Hex } from "../../../protocol/hex.ts";
import { nonceMember } from "../../nonce-member.ts";
import type { CallView } from "../call-view.ts";

type Authorization = { from: Hex; value: bigint; validAfter: bigint; validBefore: bigint; nonce: Hex };

/** Null for other calldata than a payment's call of the facilitator contract, such as that of a no-op. */
export function decodeCall(input: Hex): CallView | null {
  const decoded = decode(input);
  if (decoded === undefined) return null;
  const { functionName, args } = decoded;
  if (functionName === "settle" || functionName === "forwardReceived") {
    const [asset, authorization, , recipient] = args;
    return { name: functionName, asset, payments: [viewOf(authorization, recipient)] };
  }
  if (functionName !== "settleBatch") return null;
  const [asset, groups] = args;
  const payments = groups.flatMap((group) =>
    group.payments.map(({ authorization }) => viewOf(authorization, group.recipient)),
  );
  return { name: functionName, asset, payments };
}

/** Undefined for calldata of another contract. */
function decode(data: Hex) {
  try {
    return decodeFunctionData({ abi: x402FacilitatorAbi, data });
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
