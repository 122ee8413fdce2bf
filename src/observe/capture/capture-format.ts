import { z } from "zod";
import { address, uint256String } from "../../protocol/primitives.ts";
import { KitError } from "../../util/errors.ts";
import { self } from "../../util/self-command.ts";
import { firstPlace } from "../../util/text.ts";

/** The version of the file format. */
const captureVersion = 1;

const uint256Text = z
  .string()
  .refine((text) => uint256String.safeParse(text).success, "must be decimal digits");

/** The state of the chain, at one block, that decided a payment. */
const chainStateSchema = z.object({
  network: z.string(),
  chainId: z.int(),
  facilitatorContract: address,
  /** Whether the payment could go straight to another address than the facilitator contract. */
  mayGoStraight: z.boolean().default(false),
  asset: z.object({
    address,
    name: z.string(),
    version: z.string(),
    decimals: z.int().min(0).max(255),
    symbol: z.string().optional(),
  }),
  blockNumber: z.int().nonnegative(),
  /** Unix seconds. */
  time: z.int().nonnegative(),
  payerBalance: uint256Text,
  /** How much Permit2 may take of the payer's tokens; not there where the payment needs no approval. */
  payerAllowance: uint256Text.optional(),
  payerHasCode: z.boolean(),
  /** Whether the contract at the payer's address accepts the signature (ERC-1271); null if it was not asked. */
  walletAccepts: z.boolean().nullable(),
  authorizationUsed: z.boolean(),
  payerBlacklisted: z.boolean(),
  assetPaused: z.boolean(),
});

export type CapturedChain = z.infer<typeof chainStateSchema>;

/** A payment with everything that was decided about it, as a file. It holds no private key and no API key. */
export const captureSchema = z.object({
  x402Capture: z.literal(captureVersion),
  kit: z.string().meta({ description: "The version of the package that wrote it" }),
  capturedAt: z.string().meta({ description: "ISO 8601, UTC" }),
  operation: z.enum(["verify", "settle"]),
  /** The body of the request. */
  request: z.record(z.string(), z.unknown()),
  /** Whether the request has its signature, or zeros instead. */
  signature: z.enum(["kept", "cut"]).default("kept"),
  /** Why the signature was refused; null if it was valid, or not checked. */
  signatureRefusal: z.object({ reason: z.string(), message: z.string() }).nullable().default(null),
  /** How it ended. */
  outcome: z.string(),
  reason: z.string().nullable(),
  message: z.string().nullable(),
  ledger: z.string().nullable(),
  transaction: z.string().nullable(),
  chain: chainStateSchema,
  /** The timeline of the payment, for a person. */
  timeline: z.array(z.unknown()),
});

export type Capture = z.infer<typeof captureSchema>;

/**
 * Reads a file that `x402-kit capture` wrote.
 *
 * @throws KitError when the file is damaged, of another kind, or of a newer version
 */
export function readCapture(text: string): Capture {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new KitError("The file is no capture: it is not JSON, or it is cut off", { cause });
  }
  const version: unknown = Reflect.get(Object(value), "x402Capture");
  if (version === undefined) throw new KitError("The file is no capture of x402-kit: it has no x402Capture");
  if (typeof version === "number" && version > captureVersion) {
    throw new KitError(`The capture is of format ${version}; this x402-kit reads ${captureVersion}`, {
      hints: ["Use the version of x402-facilitator-kit that wrote it, or a newer one"],
    });
  }
  const read = captureSchema.safeParse(value);
  if (!read.success) {
    throw new KitError(`The capture is damaged at ${firstPlace(read.error)}`, {
      hints: [`Take the file as it was written, or capture the payment again: ${self} capture`],
    });
  }
  return read.data;
}
