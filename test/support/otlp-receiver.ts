import { z } from "zod";
import { listenOnLoopback } from "./loopback-server.ts";

const attribute = z.object({
  key: z.string(),
  value: z.looseObject({
    stringValue: z.string().optional(),
    intValue: z.union([z.number(), z.string()]).optional(),
  }),
});

const span = z.object({
  traceId: z.string(),
  spanId: z.string(),
  parentSpanId: z.string().optional(),
  name: z.string(),
  kind: z.number(),
  attributes: z.array(attribute),
  links: z.array(z.object({ traceId: z.string(), spanId: z.string() })).default([]),
  events: z.array(z.object({ name: z.string() })).default([]),
});

/** A span in the JSON of OTLP/HTTP. */
export type ReceivedSpan = z.infer<typeof span>;

const exported = z.object({
  resourceSpans: z.array(z.object({ scopeSpans: z.array(z.object({ spans: z.array(span) })) })),
});

/** Starts a receiver for OTLP/HTTP on this machine that stores the JSON which exporters post. */
export async function startOtlpReceiver() {
  const spans: ReceivedSpan[] = [];
  const { origin, close } = await listenOnLoopback(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    if (request.method !== "POST" || request.url !== "/v1/traces") {
      response.writeHead(404).end();
      return;
    }
    const body = exported.parse(JSON.parse(Buffer.concat(chunks).toString()));
    for (const { scopeSpans } of body.resourceSpans)
      spans.push(...scopeSpans.flatMap((scope) => scope.spans));
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
  });
  return { url: `${origin}/v1/traces`, spans, [Symbol.asyncDispose]: close };
}

/** The value of an attribute, as text. */
export function attributeOf({ attributes }: ReceivedSpan, name: string): string | undefined {
  const value = attributes.find(({ key }) => key === name)?.value;
  const found = value?.stringValue ?? value?.intValue;
  return found === undefined ? undefined : `${found}`;
}
