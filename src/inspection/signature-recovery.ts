import { isRecoveryNative } from "../chain/signing/recover.ts";
import { type Check, warning } from "./check.ts";

/** Warns where this installation recovers the signers of payments slowly, which is most of the work of a verify. */
export function checkSignatureRecovery(isNative = isRecoveryNative): Check | undefined {
  if (isNative) return undefined;
  return warning(
    "signatures",
    `are recovered in JavaScript, some 3 ms each instead of 0.1: the package secp256k1 has no binary for ${process.platform} on ${process.arch}`,
    "Install with a C++ compiler and Python, so that npm can build it, or run on Linux x64, macOS arm64 or Windows x64.",
  );
}
