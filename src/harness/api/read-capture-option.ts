import { readFileSync } from "node:fs";
import { parsePaymentRequest } from "../../methods/methods.ts";
import { type Capture, readCapture } from "../../observe/capture/capture-format.ts";
import type { Address, Hex } from "../../protocol/hex.ts";
import type { NetworkRegistry } from "../../protocol/networks.ts";
import { KitError } from "../../util/errors.ts";
import { jsonObject, requireArgument } from "../../util/given.ts";
import type { CapturedSlice } from "../setup/captured-slice.ts";

/** A payment that was captured, as a harness needs it. */
export type CaptureSource = {
  capture: Capture;
  settlementId: Hex;
  slice: CapturedSlice;
  contracts: { mainnet?: Address; testnet?: Address };
};

/**
 * Reads the option `capture` of a harness: the path of a file, or what is in it.
 *
 * @throws {ConfigurationError} when it is not even JSON
 * @throws {KitError} with one sentence when it cannot be used
 */
export function readCaptureOption(option: string | Capture, known: NetworkRegistry): CaptureSource {
  if (typeof option !== "string") requireArgument("capture", option, jsonObject);
  const capture = readCapture(typeof option === "string" ? readText(option) : JSON.stringify(option));
  const { chain, request: body } = capture;
  const network = known.named(chain.network);
  if (network === undefined) {
    throw new KitError(
      `The captured payment is of ${chain.network}, which is not one of ${known.names.join(", ")}`,
      {
        hints: ["Networks besides the five come with `networkFile`."],
      },
    );
  }
  const parsed = parsePaymentRequest(body, known);
  if (!parsed.ok) throw new KitError(`The captured payment cannot be read: ${parsed.invalid.message}`);
  const { payer, nonce } = parsed.request.payment;
  return {
    capture,
    contracts: { [network.tier]: chain.facilitatorContract },
    settlementId: parsed.request.settlementId,
    slice: {
      payer,
      nonce,
      blockNumber: chain.blockNumber,
      time: chain.time,
      payerBalance: BigInt(chain.payerBalance),
      ...walletOf(capture),
      authorizationUsed: chain.authorizationUsed,
      payerBlacklisted: chain.payerBlacklisted,
      assetPaused: chain.assetPaused,
    },
  };
}

/** Where the signature is cut, a wallet stands in for the payer, which accepts any. */
function walletOf({ chain, signature, signatureRefusal }: Capture) {
  const { payerHasCode, walletAccepts } = chain;
  const isCut = signature === "cut" && signatureRefusal === null;
  return {
    payerHasCode: payerHasCode || isCut,
    walletAccepts: isCut || (walletAccepts ?? false),
    isStandIn: isCut,
  };
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new KitError(`The capture ${file} cannot be read`, { cause });
  }
}
