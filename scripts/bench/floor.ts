/**
 * The minimum CPU of a verify: `serve` beside servers that do only part of its work, on one node, in turns. Compare
 * their shares of the first one's CPU; on a busy machine all of them take more.
 *
 * node scripts/bench/floor.ts        after `npm run build`
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import Fastify from "fastify";
import { recoverSigner } from "../../src/chain/signing/recover.ts";
import { settleTransaction } from "../../src/chain/signing/transaction.ts";
import { authorizationDigest, domainSeparator } from "../../src/protocol/authorization.ts";
import { loadFastKeccak } from "../../src/protocol/fast-keccak.ts";
import { networks } from "../../src/protocol/networks.ts";
import { parsePaymentRequest } from "../../src/protocol/requests.ts";
import { headCall } from "../../src/rpc/calls.ts";
import { createHttpRpc } from "../../src/rpc/http-rpc.ts";
import { startBareChain } from "./bare-chain.ts";
import { load, median } from "./load.ts";
import { markdownTable } from "./markdown.ts";
import { startServe } from "./serve.ts";
import { signBodies } from "./up.ts";

const rounds = 9;
const verifies = 1_000;
const uncounted = 5_000;
/** A server, and what it does before it answers. */
const kinds = ["http", "http, signature", "http, signature, call", "fastify, signature, call"] as const;

const [kind, rpcUrl = "", contract = ""] = process.argv.slice(2);
if (kind === undefined) await compare();
else await answer(kind);

async function compare(): Promise<void> {
  const bare = await startBareChain();
  const { rpcUrl, facilitatorContract } = bare.networks.base;
  const bodies = await signBodies(bare, 400, 2);
  const sides = [
    { name: "serve", ...(await startServe(bare.variables)) },
    ...(await Promise.all(
      kinds.map(async (name) => {
        const args = [fileURLToPath(import.meta.url), name, rpcUrl, facilitatorContract];
        const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
        const [url] = await once(createInterface(child.stdout), "line");
        return { name, url: String(url), pid: child.pid ?? 0, stop: async () => void child.kill() };
      }),
    )),
  ];
  const cpuOf = async (side: { url: string; pid: number }, count: number) => {
    const { good, cpu = Number.NaN } = await load({
      url: `${side.url}/verify`,
      pid: side.pid,
      headers: { authorization: bare.apiKey },
      bodies: Array.from({ length: count }, (_, index) => bodies[index % bodies.length] ?? ""),
      connections: 50,
      expect: '"isValid":true',
    });
    if (good < count) throw new Error(`${count - good} of ${count} verifies were not valid`);
    return cpu;
  };
  for (const side of sides) await cpuOf(side, uncounted);
  const measured: number[][] = sides.map(() => []);
  for (let round = 0; round < rounds; round++) {
    for (const [index, side] of sides.entries()) measured[index]?.push(await cpuOf(side, verifies));
  }
  console.log(
    markdownTable(
      sides.map(({ name }, index) => ({
        "what it does": name,
        "CPU ms each": median(measured[index] ?? []).toFixed(3),
        "of serve": median(
          measured[index]?.map((cpu, round) => cpu / (measured[0]?.[round] ?? Number.NaN)) ?? [],
        ).toFixed(2),
      })),
    ),
  );
  for (const { stop } of sides) await stop();
  await bare.stop();
}

/** In a process of its own: the server, until it is ended. */
async function answer(kind: string): Promise<void> {
  const { usdc, chainId } = networks.base;
  const separator = domainSeparator(usdc, chainId);
  await loadFastKeccak();
  const rpc = createHttpRpc({ network: "base", chainId, urls: [rpcUrl] });

  const verify = async (body: unknown): Promise<object> => {
    const parsed = kind.includes("signature") ? parsePaymentRequest(body) : undefined;
    if (parsed?.ok === true) {
      const { authorization, signature } = parsed.request;
      if (recoverSigner(authorizationDigest(separator, authorization), signature) === undefined) return {};
      if (kind.includes("call")) {
        const recipient = authorization.from;
        const { data } = settleTransaction([{ asset: usdc.address, authorization, signature, recipient }]);
        // The call reverts, because the sender is no operator: less work for the node, the same for this server.
        await rpc.ask([headCall, { method: "eth_call", params: [{ to: contract, data }, "latest"] }]);
      }
    }
    return { isValid: true, payer: contract, network: "base" };
  };

  if (kind.startsWith("fastify")) {
    const app = Fastify();
    app.post("/verify", ({ body }) => verify(body));
    console.log(await app.listen({ port: 0, host: "127.0.0.1" }));
    return;
  }
  const server = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8");
    request.on("data", (chunk: string) => {
      text += chunk;
    });
    request.on("end", async () => {
      const answer = JSON.stringify(await verify(JSON.parse(text)));
      response.writeHead(200, { "content-type": "application/json" }).end(answer);
    });
  });
  server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${Object(server.address()).port}`));
}
