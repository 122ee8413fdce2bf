import { McpServer } from "@modelcontextprotocol/server";
import { KitError } from "../../util/errors.ts";
import { bigintsAsText } from "../../util/json.ts";
import { kitVersion } from "../../util/self-command.ts";
import { failureOf } from "../kit/failure.ts";
import { createTools, type Tool, type ToolContext, type ToolResult } from "./tools.ts";

const instructions = `x402-facilitator-kit: local chains with an x402 facilitator. Call state first: it has the addresses and keys of
the running up. After a payment that failed, call why. setup gives the files of a shop; read_doc has the documentation.`;

/** Returns a factory for the MCP servers of one `up`: one server per HTTP request, or one for a stdio connection. */
export async function createMcpServers(context: ToolContext): Promise<() => McpServer> {
  const tools = await createTools(context);
  return () => {
    const server = new McpServer({ name: "x402-kit", version: kitVersion() }, { instructions });
    for (const tool of tools) {
      const { name, description, inputSchema } = tool;
      server.registerTool(name, { description, inputSchema }, async (values, { mcpReq }) =>
        answerOf(await call(tool, values, mcpReq.signal)),
      );
    }
    return server;
  };
}

async function call(tool: Tool, values: Record<string, unknown>, signal: AbortSignal): Promise<ToolResult> {
  try {
    return await tool.run(values, signal);
  } catch (error) {
    if (!(error instanceof KitError)) throw error;
    return { result: { error: failureOf(error, tool.name, undefined) }, isError: true };
  }
}

function answerOf({ result, isError = false }: ToolResult) {
  const text = JSON.stringify(result, bigintsAsText);
  return { content: [{ type: "text" as const, text }], isError };
}
