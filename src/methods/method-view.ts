import { z } from "zod";

/** A payment method, for forms and snippets. */
export const methodViewSchema = z.object({
  name: z.string().meta({ description: "In options and reports, such as permit2" }),
  label: z.string().meta({ description: "For people, such as exact · Permit2" }),
  terms: z.record(z.string(), z.string()).meta({ description: "The terms of `harness.pay` that choose it" }),
  transfer: z.string(),
  versions: z.array(z.int()),
  takesLess: z.boolean().meta({ description: "Whether what is signed is a maximum" }),
  option: z
    .string()
    .meta({ description: "The option of `harness.pay` with members to be signed as they are" }),
  end: z.string().meta({ description: "The signed member that says when the payment ends" }),
});

export type MethodView = z.infer<typeof methodViewSchema>;
