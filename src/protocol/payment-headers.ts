import { parseJson } from "../util/json.ts";

/** A value as the headers between shops and buyers carry it: base64 of JSON. Runs in browser pages too, which have no `Buffer`. */
export function encodeHeader(value: unknown): string {
  const bytes = new TextEncoder().encode(JSON.stringify(value));
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

/** The value that such a header carries; undefined when it is malformed. */
export function decodeHeader(text: string): unknown {
  try {
    // Some clients write base64url.
    const bytes = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    return parseJson(new TextDecoder().decode(Uint8Array.from(bytes, (byte) => byte.charCodeAt(0))));
  } catch {
    return undefined;
  }
}
