import { parseJson } from "../util/json.ts";

/** A value as the headers between shops and buyers carry it: base64 of JSON. */
export function encodeHeader(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString("base64");
}

/** What such a header carries; undefined when it is malformed. */
export function decodeHeader(text: string): unknown {
  return parseJson(Buffer.from(text, "base64").toString("utf8"));
}
