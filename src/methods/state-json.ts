import { z } from "zod";
import { uint256String } from "../protocol/primitives.ts";
import type { PayerState } from "./payment-state.ts";

const uint256Text = z
  .string()
  .refine((text) => uint256String.safeParse(text).success, "must be decimal digits");

/** {@link PayerState} as captures hold it: amounts are decimal digits. */
export const payerStateSchema = z.object({
  payerBalance: uint256Text,
  /** Not there where the payment needs no approval. */
  payerAllowance: uint256Text.optional(),
  authorizationUsed: z.boolean(),
  payerBlacklisted: z.boolean(),
  assetPaused: z.boolean(),
});

type PayerStateJson = z.infer<typeof payerStateSchema>;

/** What a capture holds of the payer's state, whatever it holds besides. */
export function readPayerState(json: PayerStateJson): PayerState {
  const { payerBalance, payerAllowance, ...flags } = payerStateSchema.parse(json);
  return {
    ...flags,
    payerBalance: BigInt(payerBalance),
    ...(payerAllowance !== undefined && { payerAllowance: BigInt(payerAllowance) }),
  };
}

export function writePayerState({ payerBalance, payerAllowance, ...flags }: PayerState): PayerStateJson {
  return {
    ...(payerAllowance !== undefined && { payerAllowance: `${payerAllowance}` }),
    payerBalance: `${payerBalance}`,
    ...flags,
  };
}
