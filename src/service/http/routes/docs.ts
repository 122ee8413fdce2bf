import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { Readable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { brotliCompress, brotliDecompress, constants, gzip } from "node:zlib";
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from "fastify";
import { payloadSchemas } from "../../../methods/payment-request-schema.ts";
import type { ClaimedKind } from "../../../protocol/answers.ts";
import type { NetworkRegistry } from "../../../protocol/networks.ts";
import { type ApiBeside, describeService } from "../../../protocol/openapi.ts";
import { KitError } from "../../../util/errors.ts";
import { packageFile } from "../../../util/self-command.ts";
import type { Facilitator } from "../../facilitator/facilitator.ts";
import { urlsOf } from "../connections/listen.ts";

/** The page may run its own script, which evaluates code, and may send requests to this service only. */
const pagePolicy =
  "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; connect-src 'self'";

/** `GET /docs/`: a page for reading `/openapi.json`, and its script. */
export const docsRoutes: FastifyPluginAsync = async (app) => {
  let files: ReturnType<typeof load> | undefined;
  const loadOnce = () => {
    files ??= load();
    return files;
  };
  const config = { countedAs: "documents" } as const;

  app.get("/docs", { config }, async (request, reply) => {
    if (request.url.split("?")[0] !== "/docs/") return reply.redirect("/docs/", 301);
    reply.header("content-security-policy", pagePolicy);
    return (await loadOnce()).page.send(request, reply);
  });
  app.get("/docs/js/scalar.js", { config }, async (request, reply) =>
    (await loadOnce()).script.send(request, reply),
  );
};

const scriptPath = "js/scalar.js";

/** Read on the first visit and not on every start, since the files are large and rarely needed. */
async function load() {
  const { page, script } = await readApiReference();
  const file = createStaticFile(script, {
    type: "application/javascript; charset=utf-8",
    cacheControl: ({ query }) => (isVersioned(query, file.hash) ? immutable : revalidate),
  });
  return {
    script: file,
    page: createStaticFile(page.replaceAll(scriptPath, `${scriptPath}?v=${file.hash}`), {
      type: "text/html; charset=utf-8",
      cacheControl: () => revalidate,
    }),
  };
}

function isVersioned(query: unknown, hash: string): boolean {
  return typeof query === "object" && query !== null && "v" in query && query.v === hash;
}

/** Callers keep the file forever; for URLs that change with the content. */
export const immutable = "public, max-age=31536000, immutable";
/** Callers check each time if the file has changed. */
export const revalidate = "no-cache";

/** Bytes written at a time. Slow readers hold slices of one buffer, never copies. */
const partBytes = 64 * 1024;

const compress = {
  br: (content: Buffer) =>
    promisify(brotliCompress)(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }),
  gzip: (content: Buffer) => promisify(gzip)(content),
  identity: async (content: Buffer) => content,
};
type Encoding = keyof typeof compress;

/** A file that is the same for every caller, held in memory and compressed once per encoding. */
function createStaticFile(
  content: Buffer | string,
  { type, cacheControl }: { type: string; cacheControl: (request: FastifyRequest) => string },
) {
  const original = Buffer.from(content);
  const hash = createHash("sha256").update(original).digest("base64url").slice(0, 16);
  const encoded: Partial<Record<Encoding, Promise<Buffer>>> = {};

  return {
    /** Identifies the content. */
    hash,
    /** Answers with the file, or with 304 if the caller has it. */
    async send(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
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

/**
 * Chooses the smallest encoding that the caller accepts. Without a header any is allowed (RFC 9110, 12.5.3), but curl
 * decodes none then.
 */
function chooseEncoding(accepted = "identity"): Encoding {
  const names = accepted
    .toLowerCase()
    .split(",")
    .filter((entry) => !/;\s*q=0(\.0*)?\s*$/.test(entry))
    .map((entry) => entry.split(";")[0]?.trim());
  if (names.includes("br")) return "br";
  return names.includes("gzip") ? "gzip" : "identity";
}

/** The page of `/docs` and its script, as built by `npm run build`. */
const folder = pathToFileURL(packageFile("dist/api-reference/"));

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

/**
 * `GET /openapi.json`, made on the first request. An example in it can be used once, so with one the document is made
 * again for each later request. That takes a request to a node and a signature, shared by all who wait at that time.
 */
export const openApiRoute: FastifyPluginAsync<{
  knownNetworks: NetworkRegistry;
  describeBeside?: (() => ApiBeside | Promise<ApiBeside>) | undefined;
}> = async (app, { knownNetworks, describeBeside }) => {
  let document: Promise<string> | undefined;
  let isLasting = false;

  async function describe(): Promise<string> {
    const beside = await describeBeside?.();
    isLasting = beside?.example === undefined;
    return JSON.stringify(describeService(payloadSchemas, knownNetworks, beside));
  }

  app.get("/openapi.json", { config: { countedAs: "documents" } }, async (_request, reply) => {
    document ??= describe().finally(() => {
      if (!isLasting) document = undefined;
    });
    reply.type("application/json; charset=utf-8");
    return document;
  });
};

/** `GET /supported`: the kinds of payment that are accepted, followed by those that are only listed. */
export const supportedRoute: FastifyPluginAsync<{
  facilitator: Facilitator;
  claims: readonly ClaimedKind[];
}> = async (app, { facilitator, claims }) => {
  for (const url of urlsOf("supported")) {
    app.get(url, () => {
      const { kinds, ...others } = facilitator.supported();
      return { kinds: [...kinds, ...claims], ...others };
    });
  }
};
