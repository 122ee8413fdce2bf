import { z } from "zod";
import { address, signature, uint256String } from "../../protocol/primitives.ts";
import { faults } from "../../protocol/wire-values.ts";
import { permitMember } from "./permit2-payload.ts";

/**
 * The schema of `paymentPayload.payload` for a Permit2 payment.
 *
 * @param hasFacilitator true for scheme "upto", whose witness names the account that submits it
 */
export function createPermitPayloadSchema({ hasFacilitator }: { hasFacilitator: boolean }): z.ZodObject {
  const object = <Shape extends z.ZodRawShape>(shape: Shape) => z.object(shape, faults.object);
  const permit = object({
    from: address,
    permitted: object({ token: address, amount: uint256String }),
    spender: address,
    nonce: uint256String,
    deadline: uint256String,
    witness: object({
      to: address,
      ...(hasFacilitator && { facilitator: address }),
      validAfter: uint256String,
    }),
  });
  const what = "A signed PermitWitnessTransferFrom of Permit2; times are unix seconds";
  const terms = "permitted.amount is the most that may be taken, and witness.facilitator who may take it";
  return object({ signature, [permitMember]: permit }).meta({
    description: hasFacilitator ? `${what}; ${terms}` : what,
  });
}
