import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { brotliDecompress } from "node:zlib";
import { KitError } from "../../util/errors.ts";

/** The page of `/docs` and its script, as `npm run build` leaves them. */
const folder = new URL("../../../dist/api-reference/", import.meta.url);

/** @throws {KitError} in a checkout that was never built */
export async function readApiReference(): Promise<{ page: string; script: Buffer }> {
  try {
    const [page, script] = await Promise.all([
      readFile(new URL("index.html", folder), "utf8"),
      readFile(new URL("scalar.js.br", folder)),
    ]);
    return { page, script: await promisify(brotliDecompress)(script) };
  } catch (cause) {
    throw new KitError("The page about the API is not built", { cause, hints: ["Build it: npm run build"] });
  }
}
