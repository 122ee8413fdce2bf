import { readFile } from "node:fs/promises";
import type { FastifyInstance } from "fastify";
import { packageFile, self } from "../../util/self-command.ts";

/** A documentation page of this package, by its path. */
const page = /^(?:(?:docs\/(?:guides\/|decisions\/)?)?[\w-]+\.md|\.env\.example)$/;

/**
 * `GET /llms.txt`: for coding agents, the index of the documentation and of what this address serves; `GET /llms/*`:
 * its pages. Both are files of the package, read on request.
 */
export function llmsRoutes(app: FastifyInstance): void {
  app.get("/llms.txt", async ({ protocol, host }, reply) => {
    reply.type("text/plain; charset=utf-8");
    return indexAt(`${protocol}://${host}`, await readFile(packageFile("llms.txt"), "utf8"));
  });
  app.get<{ Params: { "*": string } }>("/llms/*", async ({ params }, reply) => {
    const name = params["*"];
    const text = page.test(name)
      ? await readFile(packageFile(name), "utf8").catch(() => undefined)
      : undefined;
    if (text === undefined) return reply.code(404).send({ error: "There is no such page; see /llms.txt" });
    return reply.type("text/markdown; charset=utf-8").send(text);
  });
}

/** The package's index with links to this service, plus a section about the service itself. */
function indexAt(origin: string, index: string): string {
  const linked = index.replace(/\]\(([^):#]+)\)/g, (link, path: string) =>
    page.test(path) ? `](${origin}/llms/${path})` : link,
  );
  const [head = "", ...sections] = linked.split(/\n(?=## )/);
  const here = [
    "## Here",
    "",
    `- [API](${origin}/openapi.json) of the facilitator ${origin}/v1; [every error and its fix](${origin}/errors)`,
    `- [Payments](${origin}/payments) that were seen; \`${self} why --json --brief --url ${origin}\` says what is wrong with the last one,`,
    "  and `command` of it mends it. Every command has `--json`",
    "",
  ].join("\n");
  return [head, here, ...sections].join("\n");
}
