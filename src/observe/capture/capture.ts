import { z } from "zod";
import { recoverSigner } from "../../chain/signing/recover-signer.ts";
import { methodOf, parsePaymentRequest } from "../../methods/methods.ts";
import { type PayerState, refuseByState } from "../../methods/payment-state.ts";
import { refuseSignature } from "../../methods/refuse-signature.ts";
import { type Invalid, invalid, reasonOf, withReasonOfMethod } from "../../protocol/catalogue.ts";
import {
  type CheckName,
  checkTerms,
  checkValidityWindow,
  type ServedNetwork,
} from "../../protocol/checks.ts";
import { sameAddress } from "../../protocol/hex.ts";
import { address, uint256String } from "../../protocol/primitives.ts";
import { refusals } from "../../protocol/refusals.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { isErc6492 } from "../../protocol/signed-payment.ts";
import { KitError } from "../../util/errors.ts";
import { self } from "../../util/self-command.ts";
import { firstPlace } from "../../util/text.ts";

/** The version of the file format. */
const captureVersion = 1;

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

/** The state of the chain, at one block, that decided a payment. */
const chainStateSchema = z.object({
  network: z.string(),
  chainId: z.int(),
  facilitatorContract: address,
  /** True if the payment could go straight to another address than the facilitator contract. */
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
  ...payerStateSchema.shape,
  payerHasCode: z.boolean(),
  /** True if the contract at the payer's address accepts the signature (ERC-1271); null if it was not asked. */
  walletAccepts: z.boolean().nullable(),
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
  /** True if the request has its signature, or zeros instead. */
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

/** One repeated check of a payment, by its name in the service; `refusal` is undefined when it passes. */
export type ReplayedCheck = { check: CheckName | "isReadable"; refusal: Invalid | undefined };

/** The verdict on a captured payment that was checked again, and whether it is the recorded one. */
export type Replay = {
  checks: readonly ReplayedCheck[];
  /** `valid` or the reason. */
  verdict: string;
  /** The original verdict; undefined if there was none, or only the ledger decided it. */
  recorded: string | undefined;
  same: boolean;
};

/** Runs the service's checks again, in their order, on the captured state, without chain, ledger or network. */
export async function replayCapture(capture: Capture): Promise<Replay> {
  const checks = await makeChecks(capture);
  const verdict = checks.find(({ refusal }) => refusal !== undefined)?.refusal?.reason ?? "valid";
  const recorded = recordedVerdict(capture);
  return { checks, verdict, recorded, same: recorded === undefined || recorded === verdict };
}

/** The original verdict: `valid` or the reason; undefined if there was none. */
export function recordedVerdict({
  outcome,
  reason,
}: Pick<Capture, "outcome" | "reason">): string | undefined {
  if (["valid", "settled", "pending"].includes(outcome)) return "valid";
  return outcome === "invalid" ? (reason ?? undefined) : undefined;
}

async function makeChecks({
  request: body,
  operation,
  chain,
  signature,
  signatureRefusal,
}: Capture): Promise<ReplayedCheck[]> {
  const checks: ReplayedCheck[] = [];
  const parsed = parsePaymentRequest(body);
  checks.push({ check: "isReadable", refusal: parsed.ok ? undefined : parsed.invalid });
  if (!parsed.ok) return checks;
  const { request } = parsed;
  const checking = { method: methodOf(request.payment), operation };
  const { words } = request;
  const note = (check: CheckName, refusal: Invalid | undefined) =>
    checks.push({ check, refusal: refusal && withReasonOfMethod(refusal, words) });
  const terms = checkTerms(request, servedNetwork(chain), checking, note);
  if (terms !== undefined) return checks;
  for (const [check, judge] of stateChecks) {
    // Nor can be told what a factory would have deployed (ERC-6492).
    const isUnknown = signature === "cut" || isErc6492(request.payment.signature);
    const refusal =
      check === "signatureHolds" && isUnknown ? refusalOfThen(signatureRefusal) : await judge(request, chain);
    note(check, refusal);
    if (refusal !== undefined) break;
  }
  return checks;
}

/** The original refusal of a signature that is not in the file. */
function refusalOfThen(refusal: Capture["signatureRefusal"]): Invalid | undefined {
  if (refusal === null) return undefined;
  const isUndeployed = refusal.reason === reasonOf("wallet_not_deployed");
  return invalid(isUndeployed ? "wallet_not_deployed" : "signature_wrong", refusal.message);
}

function servedNetwork(chain: CapturedChain): ServedNetwork {
  const { network, facilitatorContract, mayGoStraight, asset } = chain;
  // Whose wallet it went to was judged then.
  return { name: network, facilitatorContract, payTo: mayGoStraight ? "any" : "contract", assets: [asset] };
}

type StateCheck = (
  request: PaymentRequest,
  chain: CapturedChain,
) => Invalid | undefined | Promise<Invalid | undefined>;

const stateChecks: readonly (readonly [CheckName, StateCheck])[] = [
  ["signatureHolds", checkSignature],
  [
    "windowIsOpen",
    (request, chain) => checkValidityWindow(request, BigInt(chain.time), servedNetwork(chain)),
  ],
  ["simulationSucceeds", simulate],
];

/** What the simulation would have shown, by the state that it depends on. */
function simulate({ payment, requirements }: PaymentRequest, chain: CapturedChain): Invalid | undefined {
  const { asset: token, network } = chain;
  const isPart = requirements.amount < payment.limit;
  const needed = isPart ? requirements.amount : payment.limit;
  return refuseByState(methodOf(payment), readPayerState(chain), { payment, needed, token, network });
}

async function checkSignature(
  { payment, words }: PaymentRequest,
  { asset, chainId, network, payerHasCode, walletAccepts }: CapturedChain,
): Promise<Invalid | undefined> {
  const { payer, signature } = payment;
  const method = methodOf(payment);
  const signer = recoverSigner(method.digester(asset, chainId)(payment), signature);
  if (signer !== undefined && sameAddress(signer, payer)) {
    // A delegated account (EIP-7702): its delegate decides.
    return payerHasCode && walletAccepts === false ? refusals.tokenRefusesSignature(payer, words) : undefined;
  }
  const proof = walletAccepts ? "accepted" : payerHasCode ? "refused" : "no_code";
  const place = { asset, network: { name: network, chainId }, recover: recoverSigner };
  return refuseSignature(method, payment, proof, place);
}
