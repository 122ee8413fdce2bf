import { parseJson } from "../util/json.ts";

/** Encodes a value for the headers between shops and buyers: base64 of JSON. Also runs in browsers, which have no `Buffer`. */
export function encodeHeader(value: unknown): string {
  const bytes = new TextEncoder().encode(JSON.stringify(value));
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

/** Decodes the value of such a header; undefined if it is malformed. */
export function decodeHeader(text: string): unknown {
  try {
    // Some clients write base64url.
    const bytes = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    return parseJson(new TextDecoder().decode(Uint8Array.from(bytes, (byte) => byte.charCodeAt(0))));
  } catch {
    return undefined;
  }
}
