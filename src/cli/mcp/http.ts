import { Readable } from "node:stream";
import { createMcpHandler, type McpHttpHandler } from "@modelcontextprotocol/server";
import type { FastifyReply, FastifyRequest } from "fastify";
import { joinHeaders } from "../../util/json.ts";
import { createMcpServers } from "./server.ts";
import type { ToolContext } from "./tools.ts";

/** Creates the handler for requests to `/mcp` (Streamable HTTP). */
export async function createMcpRoute(context: ToolContext) {
  const handler: McpHttpHandler = createMcpHandler(await createMcpServers(context));
  return async (request: FastifyRequest, reply: FastifyReply) => {
    const { method, headers, body } = request;
    const hasBody = body !== undefined && body !== null;
    const asked = new Request(new URL(request.url, context.url), {
      method,
      headers: joinHeaders(headers),
      ...(hasBody && { body: JSON.stringify(body) }),
    });
    const answer = await handler.fetch(asked, hasBody ? { parsedBody: body } : {});
    reply.code(answer.status).headers(Object.fromEntries(answer.headers));
    return reply.send(answer.body === null ? undefined : Readable.fromWeb(answer.body));
  };
}
