import { KitError } from "../errors/base.ts";
import { type HarnessDescription, harnessDescriptionSchema } from "../harness/description.ts";
import { type JsonResponse, requestJson } from "../harness/http-json.ts";
import type { Option } from "./options.ts";
import { readUrl } from "./readers.ts";

/** Where the `up` runs that a command acts on. */
export const urlOption: Option<string> = {
  describe: "where `x402-kit up` listens (default http://127.0.0.1:4402)",
  placeholder: "URL",
  env: "X402_KIT_URL",
  example: "http://127.0.0.1:4402",
  read: readUrl,
  fallback: "http://127.0.0.1:4402",
};

/**
 * Asks a running `up` what it is made of.
 *
 * @throws KitError when none answers there.
 */
export async function findHarness(url: string): Promise<HarnessDescription> {
  const response = await reach(url, () => requestJson(`${url}/harness`));
  const description = harnessDescriptionSchema.safeParse(response.body);
  if (!description.success) {
    throw new KitError(`What answers at ${url} is not x402-kit up`, {
      hints: ["Give the address that `x402-kit up` printed: --url http://127.0.0.1:PORT"],
    });
  }
  return description.data;
}

/** Runs a request against a running `up`, and says how to start one when there is none. */
export async function reach(url: string, request: () => Promise<JsonResponse>): Promise<JsonResponse> {
  try {
    return await request();
  } catch (cause) {
    throw new KitError(`Nothing answers at ${url}`, {
      cause,
      hints: [
        "Start it in another terminal: x402-kit up",
        "If it listens elsewhere: --url http://127.0.0.1:PORT",
      ],
    });
  }
}
