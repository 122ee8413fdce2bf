import { createHmac, createSecretKey, randomBytes } from "node:crypto";
import { KitError } from "../../util/errors.ts";

/** An API key and the part of it that is no secret. */
export type ApiKey = { key: string; keyId: string };

// Neither part may hold the separator, so that a key splits in one way only.
const format = /^x4k_([0-9A-Za-z]{1,32})_[0-9A-Za-z]{32,128}$/;

/**
 * Draws a key `x4k_<id>_<secret>`: the id of 8 random bytes, the secret of 32, both in lower-case hex. Imported keys
 * may use any letters and digits.
 */
export function drawApiKey(): ApiKey {
  const keyId = randomBytes(8).toString("hex");
  return { keyId, key: `x4k_${keyId}_${randomBytes(32).toString("hex")}` };
}

/** Reads a key; null when it is malformed. */
export function parseApiKey(key: string): ApiKey | null {
  const keyId = format.exec(key)?.[1];
  return keyId === undefined ? null : { key, keyId };
}

/**
 * Makes the function under which keys are stored: HMAC-SHA-256 with the pepper. It covers the id too, so that
 * write access to the database does not suffice to give one key's HMAC to another key.
 */
export function createKeyHmac(pepper: string): (key: string) => Buffer {
  if (pepper === "") throw new KitError("The pepper of the API keys must not be empty");
  const secret = createSecretKey(pepper, "utf8");
  return (key) => createHmac("sha256", secret).update(key).digest();
}
