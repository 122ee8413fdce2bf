import { defineCommand, networkFileOption, urlOption } from "../kit/command.ts";

export const mcp = defineCommand({
  options: { ...networkFileOption, url: urlOption },

  async run({ url }, { env, takeSignals, program }) {
    const [{ serveStdio }, { createMcpServers }] = await Promise.all([
      import("@modelcontextprotocol/server/stdio"),
      import("../mcp/server.ts"),
    ]);
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    takeSignals().addEventListener("abort", () => resolve());
    // The client ends the server by closing its end of the pipe.
    process.stdin.once("close", resolve).once("end", resolve);
    const connection = serveStdio(await createMcpServers({ url, networkFile: env.NETWORKS_FILE, program }));
    await ended;
    await connection.close();
    return 0;
  },
});
