import { z } from "zod";
import {
  dialects,
  invalidReasons,
  type NextStep,
  nextActions,
  paymentStates,
  referenceReasons,
  type SettleErrorReasonV2,
  situations,
} from "./catalogue.ts";
import { channelReasons } from "./channel-reasons.ts";
import type { Hex } from "./hex.ts";
import { bytes32 } from "./primitives.ts";
import { settlementStates } from "./settlement-query.ts";
import { payToPolicies } from "./signed-payment.ts";
import { strictnesses, warningCodes } from "./strictness.ts";

export const settleErrorReasonsV2: [SettleErrorReasonV2, ...SettleErrorReasonV2[]] = [
  ...invalidReasons,
  "settlement_pending",
  "unexpected_settle_error",
];

/** The members of every response that is not a success. */
const nextStepSchema = {
  situation: z
    .enum(namesOf(situations))
    .meta({
      description: "What has happened, more exactly than the reason says; docs/errors.md has the table",
    })
    .optional(),
  nextAction: z
    .enum(namesOf(nextActions))
    .meta({ description: "What a machine should do; docs/errors.md has the table" })
    .optional(),
  paymentState: z
    .enum(namesOf(paymentStates))
    .meta({ description: "What is known of the payer's money" })
    .optional(),
  retryAfterSeconds: z.number().meta({ description: "When to ask again, at the soonest" }).optional(),
  poll: z.string().meta({ description: "Where the settlement can be asked for" }).optional(),
};

function namesOf<Name extends string>(table: Readonly<Record<Name, unknown>>): [Name, ...Name[]] {
  return Object.keys(table) as [Name, ...Name[]];
}

const payer = z.string().meta({ description: "authorization.from, when it could be read" }).optional();
const network = z
  .string()
  .meta({ description: "The network as the caller spelled it; empty when it could not be read" });

/** The caller, and whether its organization's own settings were used. */
export const authContextSchema = z.object({
  organizationId: z.string(),
  authMethod: z.enum(["organization_specific", "default"]).meta({
    description:
      "organization_specific when the key's organization has a recipient on the network; default otherwise",
  }),
  timestamp: z.string().meta({ description: "ISO 8601, UTC" }),
});

export type AuthContext = z.infer<typeof authContextSchema>;

const warnings = z
  .array(z.object({ code: z.enum(warningCodes), at: z.string(), message: z.string() }))
  .meta({
    description:
      "What the public reference facilitator refuses in this good payment, or what was ignored in it",
  })
  .optional();

/** The members of responses that belong to one scheme. */
const extra = z
  .record(z.string(), z.unknown())
  .meta({ description: "Of scheme batch-settlement: the state of the channel" })
  .optional();

const verdict = { payer, network, authContext: authContextSchema };
const refusal = {
  invalidReason: z.enum([...invalidReasons, ...referenceReasons, ...channelReasons]),
  invalidMessage: z.string().meta({ description: "What is wrong, in a sentence" }),
};

const validAnswer = z.object({ isValid: z.literal(true), ...verdict, warnings, extra });
const invalidAnswer = z.object({
  isValid: z.literal(false),
  ...refusal,
  ...verdict,
  ...z.object(nextStepSchema).required({ situation: true, nextAction: true, paymentState: true }).shape,
});

/** The decision about a payment. Status 200, valid or not. */
export const verifyAnswerSchema = z.discriminatedUnion("isValid", [validAnswer, invalidAnswer]);

/** The same as one object, for the OpenAPI document: client generators handle unions badly. */
export const verifyAnswerDocument = z.object({
  isValid: z.boolean(),
  ...z.object(refusal).partial().shape,
  ...verdict,
  warnings,
  extra,
  ...nextStepSchema,
});

export type VerifyAnswer = Alternatives<z.infer<typeof validAnswer>, z.infer<typeof invalidAnswer>>;

const uint256Text = z.string().meta({
  description:
    "What was settled, of schemes upto and batch-settlement: in the asset's smallest unit, as decimal digits",
});

const outcome = { network, payer };
const failure = {
  errorReason: z.enum([...settleErrorReasonsV2, ...referenceReasons, ...channelReasons]),
  errorMessage: z.string().meta({ description: "What happened, in a sentence" }),
};

/** The hash of the transaction that moved the money; empty for scheme “upto” if there was nothing to move. */
const settledIn = z.union([bytes32, z.literal("")]);

const settledAnswer = z.object({
  success: z.literal(true),
  transaction: settledIn,
  ...outcome,
  amount: uint256Text.optional(),
  warnings,
  extra,
});
const failedAnswer = z.object({
  success: z.literal(false),
  // With the reference facilitator's reasons, the hash of a reverted transaction.
  transaction: settledIn,
  ...outcome,
  ...failure,
  ...z.object(nextStepSchema).required({ situation: true, nextAction: true, paymentState: true }).shape,
});

/** The outcome of a settle. Status 200 if it is decided. */
export const settleAnswerSchema = z.discriminatedUnion("success", [settledAnswer, failedAnswer]);

/** The same as one object, for the OpenAPI document. */
export const settleAnswerDocument = z.object({
  success: z.boolean(),
  transaction: z.string().meta({
    description:
      "Transaction hash on success; empty on failure, and where nothing was to be taken. With REASONS=reference also that of a reverted one",
  }),
  amount: uint256Text.optional(),
  warnings,
  extra,
  ...outcome,
  ...z.object(failure).partial().shape,
  ...nextStepSchema,
});

export type SettleAnswer = Alternatives<z.infer<typeof settledAnswer>, z.infer<typeof failedAnswer>>;

/** One of two responses. Members that only the bad one has can be read before it is known which one it is. */
type Alternatives<Good, Bad> = (Good & { [Member in Exclude<keyof Bad, keyof Good>]?: never }) | Bad;

/** A response as it is written; the expected responses of the fixtures have placeholders for some members. */
export type Written<Answer> = Answer extends unknown
  ? Omit<Answer, keyof NextStep | "transaction"> & {
      [Member in keyof NextStep]?: NextStep[Member] | undefined;
    } & (Answer extends { transaction: string }
        ? { transaction: string }
        : { transaction?: string | undefined })
  : never;

const supportedKind = z.object({
  x402Version: z.union([z.literal(1), z.literal(2)]),
  scheme: z.string(),
  network: z.string(),
  extra: z
    .object({
      payTo: z
        .enum(payToPolicies)
        .exclude(["contract"])
        .meta({
          description:
            "Where payments may go besides the facilitator contract: to the organization's own recipient, or to any address. Only where they may",
        })
        .optional(),
      strictness: z
        .enum(strictnesses)
        .exclude(["spec"])
        .meta({
          description: "As strict and as lenient as the public reference facilitator. Only where it is",
        })
        .optional(),
      reasons: z
        .enum(dialects)
        .exclude(["spec"])
        .meta({ description: "Reasons are those of the public reference facilitator. Only where they are" })
        .optional(),
      assetTransferMethod: z
        .string()
        .meta({
          description: "How the payer pays; by EIP-3009 where it is left out. Sellers put it into extra",
        })
        .optional(),
      facilitatorAddress: z
        .string()
        .meta({ description: "Of scheme upto: who submits the payments. Sellers put it into extra" })
        .optional(),
      receiverAuthorizer: z
        .string()
        .meta({
          description:
            "Of scheme batch-settlement: who signs claims and refunds for shops without a key of their own",
        })
        .optional(),
    })
    .optional(),
});

/** The response of `/supported`: the payment methods that the service takes. */
export const supportedSchema = z.object({
  kinds: z.array(supportedKind),
  extensions: z.array(z.string()),
  signers: z
    .record(z.string(), z.array(z.string()))
    .meta({ description: "The operator addresses, by CAIP-2 pattern" }),
});

export type Supported = z.infer<typeof supportedSchema>;

/** A kind of payment that `/supported` lists although it is refused: servers look for it before they start. */
export type ClaimedKind = Pick<Supported["kinds"][number], "x402Version" | "network"> & { scheme: string };

/**
 * No decision: RFC 9457 problem details. On verify and settle it also has the x402 members, so that public clients,
 * which only look for those, show something.
 */
export const problemSchema = z.object({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  instance: z.string().meta({ description: "The service's own id of the request, in every line of its log" }),
  isValid: z.literal(false).optional(),
  invalidReason: z.literal("unexpected_verify_error").optional(),
  invalidMessage: z.string().optional(),
  success: z.literal(false).optional(),
  errorReason: z.enum(["unexpected_settle_error", "settlement_pending"]).optional(),
  errorMessage: z.string().optional(),
  transaction: z
    .string()
    .transform((text) => text as Hex | "")
    .optional(),
  network: z.string().optional(),
  payer: z.string().optional(),
  ...nextStepSchema,
});

export type ProblemDetails = z.infer<typeof problemSchema>;

/** A settlement as its organization sees it. */
export const settlementViewSchema = z.object({
  id: z.string().meta({ description: "keccak256 of (chainId, asset, payer, authorization nonce)" }),
  state: z.enum(settlementStates),
  network: z.string(),
  asset: z.string(),
  payer: z.string(),
  authorizationNonce: z.string(),
  value: z.string().meta({ description: "What is settled, in the asset's smallest unit" }),
  maximum: z
    .string()
    .meta({ description: "The most that the payer allowed: more than the value where less is taken of it" }),
  recipient: z.string(),
  transaction: z.string().meta({ description: "The mined transaction, or the newest one sent" }),
  blockNumber: z.string().nullable(),
  failure: z.string().nullable(),
  claimedAt: z.string().meta({ description: "ISO 8601, UTC" }),
  concludedAt: z.string().nullable(),
  deliveredAt: z
    .string()
    .nullable()
    .meta({ description: "When the success was delivered to a caller; null before" }),
});

export type SettlementView = z.infer<typeof settlementViewSchema>;

/** A page of an organization's settlements, newest first. */
export const settlementListSchema = z.object({
  settlements: z.array(settlementViewSchema),
  next: z.string().nullable().meta({ description: "The `cursor` of the next page; null when there is none" }),
});

export type SettlementList = z.infer<typeof settlementListSchema>;

export const livenessSchema = z.object({ status: z.literal("ok") });

const networkHealthSchema = z.object({ ready: z.boolean(), detail: z.string() });

export const readinessSchema = z.object({
  status: z.enum(["ready", "degraded", "not ready"]),
  networks: z.record(z.string(), networkHealthSchema),
});

/** The state of one network, for `/readyz`. */
export type NetworkHealth = z.infer<typeof networkHealthSchema>;

export type Readiness = z.infer<typeof readinessSchema>;
