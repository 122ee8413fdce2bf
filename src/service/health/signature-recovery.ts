import { isRecoveryNative } from "../../chain/signing/recover.ts";
import { type Check, warning } from "./check.ts";

/** Warns if this installation recovers signers without the native library, since that is most of a verify's work. */
export function checkSignatureRecovery(isNative = isRecoveryNative): Check | undefined {
  if (isNative) return undefined;
  return warning(
    "signatures",
    `are recovered in JavaScript, some 3 ms each instead of 0.1: the package secp256k1 has no binary for ${process.platform} on ${process.arch}`,
    "Install with a C++ compiler and Python, so that npm can build it, or run on Linux x64, macOS arm64 or Windows x64.",
  );
}
