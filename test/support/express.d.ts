/** The part of express that the tests use; the package has no types. */
declare module "express" {
  import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";

  export type Request = IncomingMessage;
  export type Response = ServerResponse & { json(body: unknown): void };
  export type NextFunction = (error?: unknown) => void;
  export type Handler = (request: Request, response: Response, next: NextFunction) => unknown;

  export default function express(): RequestListener & {
    use(handler: Handler): void;
    get(path: string, handler: Handler): void;
  };
}
