import { z } from "zod";
import { address, bytes32, signature, uint256String } from "../../protocol/primitives.ts";
import { faults } from "../../protocol/wire-values.ts";
import { mostClaims } from "./payloads.ts";

const object = <Shape extends z.ZodRawShape>(shape: Shape) => z.object(shape, faults.object);
const absent = z.never().optional();

const uint128String = uint256String.refine((value) => value < 2n ** 128n, "must be below 2^128");

const channelConfig = object({
  payer: address,
  payerAuthorizer: address.meta({ description: "Signs the vouchers; the zero address if the payer does" }),
  receiver: address,
  receiverAuthorizer: address,
  token: address,
  withdrawDelay: z.int(faults.seconds).nonnegative(faults.negative),
  salt: bytes32,
});

const voucher = object({ channelId: bytes32, maxClaimableAmount: uint128String, signature });

const claims = z
  .array(
    object({
      voucher: object({ channel: channelConfig, maxClaimableAmount: uint128String }),
      signature,
      totalClaimed: uint128String,
    }),
  )
  .max(mostClaims);

const authorization = z.union([
  object({
    erc3009Authorization: object({
      validAfter: uint256String,
      validBefore: uint256String,
      salt: bytes32,
      signature,
    }),
    permit2Authorization: absent,
  }),
  object({
    permit2Authorization: object({
      from: address,
      permitted: object({ token: address, amount: uint256String }),
      spender: address,
      nonce: uint256String,
      deadline: uint256String,
      witness: object({ channelId: bytes32 }),
      signature,
    }),
  }),
]);

/** `paymentPayload.payload` of scheme "batch-settlement": what buyers send, and shops' actions, which only settle accepts. */
export const channelPayloadSchema = z.union([
  object({
    type: z.literal("deposit"),
    channelConfig,
    voucher,
    deposit: object({ amount: uint128String, authorization }),
  }).meta({ description: "A deposit into a channel, and the voucher of the first purchase" }),
  object({ type: z.literal("voucher"), channelConfig, voucher }).meta({
    description: "A voucher over all that may be claimed from a channel",
  }),
  object({ type: z.literal("refund"), channelConfig, voucher, refundNonce: absent }).meta({
    description: "A buyer's wish to have the rest of a channel back",
  }),
  object({
    type: z.literal("refund"),
    channelConfig,
    voucher,
    amount: uint128String,
    refundNonce: uint256String,
    claims,
    refundAuthorizerSignature: signature.optional(),
    claimAuthorizerSignature: signature.optional(),
  }).meta({ description: "The refund as its shop settles it, with the claims that come before it" }),
  object({
    type: z.literal("claim"),
    claims: claims.min(1),
    claimAuthorizerSignature: signature.optional(),
  }).meta({ description: "A claim of what was charged; the facilitator signs it if it is the authorizer" }),
  object({ type: z.literal("settle"), receiver: address, token: address }).meta({
    description: "A payout of what was claimed for a receiver",
  }),
]);
