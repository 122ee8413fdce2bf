import { gunzipSync } from "node:zlib";
import { KitError } from "./errors.ts";

const mebibyte = 1_048_576;
/** Allowed for any file, however small. */
const alwaysAllowed = 64 * mebibyte;
/** The maximum ratio of unpacked to packed size. Files of the kit have a ratio of some fifteen; gzip can reach a thousand. */
const mostTimes = 32;
/** The limit for any file, however large; slightly below the longest string of Node. */
export const mostUnpacked = 500 * mebibyte;

/**
 * Unpacks the gzip data of a file that may come from somebody else: up to 64 MiB or 32 times the file's size, whichever
 * is larger, and never more than {@link mostUnpacked}.
 *
 * @param packed the whole file, or gzip data inside it
 * @throws {KitError} naming the file, if it would exceed that; the error of zlib if it is damaged
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
