/*
 * The part of Postgres' wire protocol (version 3) that a proxy needs; see "Message Formats" in its manual. A message is
 * a one-letter type, a 32-bit length that includes itself, and a body; a client's first message has no type.
 */

export type WireMessage = { type: string; body: Buffer; bytes: Buffer };

/** Splits a stream of bytes into messages. */
export function createMessageReader(options: { startsUntyped: boolean }) {
  let rest = Buffer.alloc(0);
  let untyped = options.startsUntyped;
  return (chunk: Buffer): WireMessage[] => {
    rest = Buffer.concat([rest, chunk]);
    const messages: WireMessage[] = [];
    for (;;) {
      const header = untyped ? 0 : 1;
      if (rest.length < header + 4) return messages;
      const length = header + rest.readInt32BE(header);
      if (rest.length < length) return messages;
      const bytes = rest.subarray(0, length);
      const type = untyped ? "" : String.fromCharCode(bytes[0] ?? 0);
      messages.push({ type, body: bytes.subarray(header + 4), bytes });
      rest = rest.subarray(length);
      untyped = false;
    }
  };
}

export function writeMessage(type: string, body: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length + 4);
  return Buffer.concat([Buffer.from(type, "latin1"), length, body]);
}

/** Zero-terminated strings. */
export function zeroTerminated(...texts: string[]): Buffer {
  return Buffer.from(texts.map((text) => `${text}\0`).join(""), "utf8");
}

/** A client's first message. */
export function writeStartup(parameters: Record<string, string>): Buffer {
  const version = Buffer.from([0, 3, 0, 0]);
  return writeMessage(
    "",
    Buffer.concat([version, zeroTerminated(...Object.entries(parameters).flat()), Buffer.from([0])]),
  );
}

/** The parameters in a client's first message; null if it asks for encryption or a cancellation instead. */
export function readStartup({ body }: WireMessage): Record<string, string> | null {
  if (body.readInt32BE(0) !== 0x30000) return null;
  const texts = body.subarray(4).toString("utf8").split("\0");
  const parameters: Record<string, string> = {};
  for (let index = 0; texts[index]; index += 2) parameters[texts[index] ?? ""] = texts[index + 1] ?? "";
  return parameters;
}

/** The SQL in a client's message: a simple query, or a statement to parse under a name. */
export function sqlOf({ type, body }: WireMessage): { name: string; sql: string } | null {
  const texts = body.toString("utf8").split("\0");
  if (type === "Q") return { name: "", sql: texts[0] ?? "" };
  if (type === "P") return { name: texts[0] ?? "", sql: texts[1] ?? "" };
  return null;
}
