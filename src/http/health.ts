import type { FastifyInstance } from "fastify";

/** How one network stands, for `/readyz`. */
export type NetworkHealth = { ready: boolean; detail: string };

/** Asks every network how it stands. Never throws. */
export type CheckHealth = () => Promise<Readonly<Record<string, NetworkHealth>>>;

/**
 * `GET /livez`: the process answers. `GET /readyz`: every network can be asked (200), or which one cannot (503).
 */
export function healthRoutes(app: FastifyInstance, checkHealth: CheckHealth): void {
  app.get("/livez", () => ({ status: "ok" }));
  app.get("/readyz", async (_request, reply) => {
    const networks = await checkHealth();
    const ready = Object.values(networks).every((network) => network.ready);
    return reply.code(ready ? 200 : 503).send({ status: ready ? "ready" : "not ready", networks });
  });
}
