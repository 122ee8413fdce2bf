import { z } from "zod";
import { nextActions, paymentStates } from "./situations.ts";

/** The members of every answer that is not a success. */
export const nextStepSchema = {
  nextAction: z
    .enum(Object.keys(nextActions) as [keyof typeof nextActions, ...(keyof typeof nextActions)[]])
    .meta({ description: "What a machine should do; docs/errors.md has the table" })
    .optional(),
  paymentState: z
    .enum(Object.keys(paymentStates) as [keyof typeof paymentStates, ...(keyof typeof paymentStates)[]])
    .meta({ description: "What is known of the payer's money" })
    .optional(),
  retryAfterSeconds: z.number().meta({ description: "When to ask again, at the soonest" }).optional(),
  poll: z.string().meta({ description: "Where the settlement can be asked for" }).optional(),
};
