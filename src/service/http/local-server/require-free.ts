import { once } from "node:events";
import { createServer } from "node:net";
import { KitError } from "../../../util/errors.ts";
import { escapeControls } from "../../../util/escape-controls.ts";

/**
 * Listens there and stops again, so that a start fails before anything else is started.
 *
 * @throws {KitError} when nothing can listen there: see {@link explainListenError}
 */
export async function requireFree(host: string, port: number): Promise<void> {
  const server = createServer();
  try {
    server.listen({ host, port });
    await once(server, "listening");
  } catch (error) {
    throw explainListenError(error, host, port);
  }
  server.close();
  await once(server, "close");
}

/** The error of `listen` in words that say what to do; other errors as they are. */
export function explainListenError(
  error: unknown,
  host: string,
  port: number,
  command = "x402-kit up",
): unknown {
  if (!(error instanceof Error) || !("code" in error)) return error;
  const anyPort = "Choose another by --port or PORT (in a program, by the option port); 0 is any free one.";
  switch (error.code) {
    case "EADDRINUSE":
      return new KitError(`Port ${port} on ${host} is in use`, {
        hints: [`Stop what listens there; if it is ${command}, use it as it is.`, anyPort],
      });
    case "EACCES":
      return new KitError(`Port ${port} on ${host} may not be used without more rights`, {
        hints: [anyPort],
      });
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return new KitError(`${escapeControls(host)} is not an address of this machine`, {
        hints: ["Leave the host out to listen on 127.0.0.1; 0.0.0.0 is every address."],
      });
    default:
      return error;
  }
}
