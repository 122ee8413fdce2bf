import { z } from "zod";
import { callViewSchema } from "../../methods/exact-eip3009/call-view.ts";

const text = z.string().nullable();

/** The answer of `GET /payments/{id}/transaction`. Gas, its price and the fee are decimal, in wei where they are money. */
export const transactionViewSchema = z.object({
  ...{ hash: z.string(), from: text, to: text, gasLimit: text },
  call: callViewSchema.nullable().meta({ description: "Null where it moves no payment" }),
  mined: z
    .object({
      ...{ succeeded: z.boolean(), blockNumber: z.string(), blockHash: z.string() },
      ...{ gasUsed: text, gasPrice: text, fee: text },
      events: z.array(
        z.object({
          name: z.string(),
          emitter: z.string().meta({ description: "The contract" }),
          logIndex: z.int(),
          fields: z.record(z.string(), z.string()),
        }),
      ),
    })
    .nullable(),
});

export type TransactionView = z.infer<typeof transactionViewSchema>;
