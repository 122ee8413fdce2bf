import { gunzipSync } from "node:zlib";
import { KitError } from "./errors.ts";

const mebibyte = 1_048_576;
/** However small the file is. */
const alwaysAllowed = 64 * mebibyte;
/** The maximum ratio of unpacked to packed size. Files of the kit have some fifteen; gzip makes a thousand possible. */
const mostTimes = 32;
/** However large the file is; the longest text of Node is a little longer. */
export const mostUnpacked = 500 * mebibyte;

/**
 * Unpacks gzip of a file that may be somebody else's, to 64 MiB or 32 times the file's size at most, and never more than
 * {@link mostUnpacked}.
 *
 * @param packed all of the file, or gzip that was in it
 * @throws {KitError} that names the file, where it would be more; what zlib throws, where it is damaged
 */
export function unpack(packed: Uint8Array, file: { path: string; bytes: number }): Buffer {
  const most = Math.min(mostUnpacked, Math.max(alwaysAllowed, mostTimes * file.bytes));
  try {
    return gunzipSync(packed, { maxOutputLength: most });
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE")) throw error;
    throw new KitError(
      `${file.path} holds more than ${Math.floor(most / mebibyte)} MiB when it is unpacked`,
      {
        hints: ["x402-kit never writes a file that unpacks to so many times its size: do not use it."],
      },
    );
  }
}
