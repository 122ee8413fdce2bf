import { z } from "zod";
import { address, bytes32, signature, uint256String } from "../../protocol/primitives.ts";
import { faults } from "../../protocol/wire-values.ts";
import { nonceMember } from "../method.ts";
import { forTimes } from "../payment-times.ts";

/** `paymentPayload.payload` of scheme "exact" on EVM networks, the same in both versions. */
export const exactPayloadSchema = z
  .object(
    {
      signature,
      authorization: z.object(
        {
          from: address,
          to: address,
          value: uint256String,
          validAfter: uint256String,
          validBefore: uint256String,
          nonce: bytes32,
        },
        faults.object,
      ),
    },
    faults.object,
  )
  .meta({ description: "A signed EIP-3009 TransferWithAuthorization; times are unix seconds" });

/** A call of the facilitator contract, or of a token, for a person, without signatures. Amounts are in the asset's smallest unit. */
export const callViewSchema = z.object({
  name: z.enum([
    ...(["settle", "settleBatch", "forwardReceived", "transferWithAuthorization", "transferBatch"] as const),
    ...(["settlePermit2", "settlePermit2Batch", "forwardReceivedWithPermit2"] as const),
  ]),
  asset: z.string(),
  payments: z.array(
    z.object({
      ...{ payer: z.string(), recipient: z.string(), value: z.string(), [nonceMember]: z.string() },
      ...forTimes(() => z.string()),
    }),
  ),
});

export type CallView = z.infer<typeof callViewSchema>;
