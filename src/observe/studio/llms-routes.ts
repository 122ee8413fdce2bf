import { readFile } from "node:fs/promises";
import type { FastifyInstance } from "fastify";
import { packageFile, self } from "../../util/self-command.ts";

/** A page of this package, by its path in it. */
const page = /^(?:(?:docs\/(?:guides\/|decisions\/)?)?[\w-]+\.md|\.env\.example)$/;

/**
 * `GET /llms.txt`: what a coding agent finds at this address, and the index of the documentation, whose pages are below
 * `/llms/`. Both are files of the package, read when they are asked for.
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

/** The package's own index, with links that this service answers, after what is served here itself. */
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
