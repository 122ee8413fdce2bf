import type { FastifyInstance } from "fastify";

/** `POST /close`: the x402 project's own test suite ends a facilitator with it. Calls `onClose` once it is answered. */
export function closeRoute(app: FastifyInstance, { onClose }: { onClose(): void }): void {
  app.post("/close", (_request, reply) => {
    reply.raw.once("close", onClose);
    return reply.header("connection", "close").send({ message: "Closing" });
  });
}
