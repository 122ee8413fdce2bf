import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { startCliWithFiles } from "../../support/cli.ts";

/*
 * A program that opens connections and leaves them open, such as a load test that ends badly, takes neither `up` nor
 * `mock` away from others: idle connections are closed for new ones before the process can open no more files.
 */

test.each([
  { command: ["up", "--port", "0", "--networks", "base", "--json"], path: "/readyz" },
  { command: ["mock", "--port", "0", "--json"], path: "/v1/supported" },
])(
  "$command.0 answers although more idle connections were opened than the process may open files",
  async ({ command, path }) => {
    const openFiles = 512;
    await using started = await startCliWithFiles(openFiles, command);
    const [, url = ""] = await started.printed(/^\{"facilitator":\{"url":"([^"]+)/m);
    const { port, origin } = new URL(url);
    const sockets = Array.from({ length: 2 * openFiles }, () => connect(Number(port), "127.0.0.1").resume());
    try {
      await Promise.all(
        sockets.map((socket) =>
          once(
            socket.on("error", () => {}),
            "connect",
          ),
        ),
      );
      const asked = await Promise.all(
        Array.from({ length: 5 }, () => fetch(`${origin}${path}`, { headers: { connection: "close" } })),
      );
      expect(asked.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
      const open = () => sockets.filter(({ closed }) => !closed).length;
      // A quarter of the files, 128 at least, is left for others.
      await expect.poll(open).toBeLessThanOrEqual(openFiles - 128);
      // The service's own connections to its node are as they were.
      expect(started.stderr()).toBe("");
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  },
);
