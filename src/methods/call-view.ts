import { z } from "zod";
import { nonceMember } from "./method.ts";
import { forTimes } from "./payment-times.ts";

/** A call to the facilitator contract or a token, for display: without signatures, amounts in the asset's smallest unit. */
export const callViewSchema = z.object({
  name: z.enum([
    ...(["settle", "settleBatch", "forwardReceived", "transferWithAuthorization", "transferBatch"] as const),
    ...(["settlePermit2", "settlePermit2Batch", "forwardReceivedWithPermit2"] as const),
  ]),
  asset: z.string(),
  payments: z.array(
    z.object({
      payer: z.string(),
      recipient: z.string(),
      value: z.string(),
      [nonceMember]: z.string(),
      ...forTimes(() => z.string()),
    }),
  ),
  /** The builder codes appended to the calldata (ERC-8021), if any. */
  codes: z
    .object({ app: z.string(), wallet: z.string(), services: z.array(z.string()).readonly() })
    .partial()
    .optional(),
});

export type CallView = z.infer<typeof callViewSchema>;
