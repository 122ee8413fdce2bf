import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { FastifyReply, FastifyRequest } from "fastify";

/** A file that is the same for every caller, held in memory and compressed once per encoding. */
export type StaticFile = {
  /** Names the content. */
  readonly hash: string;
  /** Answers with the file, or with 304 where the caller has it. */
  send(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply>;
};

/** Callers keep the file for ever; for URLs that change with the content. */
export const immutable = "public, max-age=31536000, immutable";
/** Callers ask each time whether it is still the same. */
export const revalidate = "no-cache";

/** Bytes written at a time. Slow readers hold slices of the one buffer, never copies. */
const partBytes = 64 * 1024;

const compress = {
  br: (content: Buffer) =>
    promisify(brotliCompress)(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }),
  gzip: (content: Buffer) => promisify(gzip)(content),
  identity: async (content: Buffer) => content,
};
type Encoding = keyof typeof compress;

export function createStaticFile(
  content: Buffer | string,
  { type, cacheControl }: { type: string; cacheControl: (request: FastifyRequest) => string },
): StaticFile {
  const original = Buffer.from(content);
  const hash = createHash("sha256").update(original).digest("base64url").slice(0, 16);
  const encoded: Partial<Record<Encoding, Promise<Buffer>>> = {};

  return {
    hash,
    async send(request, reply) {
      const encoding = chooseEncoding(request.headers["accept-encoding"]?.toString());
      const etag = `"${hash}-${encoding}"`;
      reply.headers({ etag, "cache-control": cacheControl(request), vary: "accept-encoding" });
      if (request.headers["if-none-match"]?.includes(etag)) return reply.code(304).send();
      encoded[encoding] ??= compress[encoding](original);
      const body = await encoded[encoding];
      if (encoding !== "identity") reply.header("content-encoding", encoding);
      return reply
        .type(type)
        .header("content-length", body.length)
        .send(Readable.from(partsOf(body)));
    },
  };
}

/** Lets other requests run between two parts. */
async function* partsOf(body: Buffer): AsyncGenerator<Buffer> {
  for (let start = 0; start < body.length; start += partBytes) {
    yield body.subarray(start, start + partBytes);
    await nextTurn();
  }
}

/** The smallest encoding that the caller accepts. Without a header it may be any (RFC 9110, 12.5.3), but curl decodes none then. */
function chooseEncoding(accepted = "identity"): Encoding {
  const names = accepted
    .toLowerCase()
    .split(",")
    .filter((entry) => !/;\s*q=0(\.0*)?\s*$/.test(entry))
    .map((entry) => entry.split(";")[0]?.trim());
  if (names.includes("br")) return "br";
  return names.includes("gzip") ? "gzip" : "identity";
}
