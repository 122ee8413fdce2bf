import { z } from "zod";
import { address, bytes32, signature, uint256String } from "../../protocol/primitives.ts";
import { faults } from "../../protocol/wire-values.ts";

/** The schema of `paymentPayload.payload` for scheme "exact" on EVM networks; the same in both versions. */
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
