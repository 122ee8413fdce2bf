import { z } from "zod";

const text = z.string().nullable();

const callViewSchema = z.object({
  name: z.enum(["settle", "settleBatch", "forwardReceived"]),
  asset: z.string(),
  payments: z.array(
    z.object({
      ...{ payer: z.string(), recipient: z.string(), value: z.string(), authorizationNonce: z.string() },
      ...{ validAfter: z.string(), validBefore: z.string() },
    }),
  ),
});

/** A call of the facilitator contract, without signatures. Amounts are in the asset's smallest unit. */
export type CallView = z.infer<typeof callViewSchema>;

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
