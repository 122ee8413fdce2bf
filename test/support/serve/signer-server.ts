import { createServer } from "node:http";
import { createLocalSigner } from "../../../src/chain/signing/local-signer.ts";
import type { Hex } from "../../../src/protocol/hex.ts";
import { closeAtOnce, listenOnLoopback } from "../../../src/util/node-http.ts";

/** A JSON-RPC signer with the given key, like a bridge to a key management service. */
export async function startSigner(key: Hex): Promise<{ url: string; stop(): Promise<void> }> {
  const signer = createLocalSigner(key);
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { id, params } = JSON.parse(Buffer.concat(chunks).toString());
    const [{ to, data, chainId, nonce, gas, maxFeePerGas, maxPriorityFeePerGas }] = params;
    const { raw } = await signer.signTransaction({
      chainId: Number(chainId),
      nonce: Number(nonce),
      to,
      data,
      gas: BigInt(gas),
      maxFeePerGas: BigInt(maxFeePerGas),
      maxPriorityFeePerGas: BigInt(maxPriorityFeePerGas),
    });
    response.end(JSON.stringify({ jsonrpc: "2.0", id, result: raw }));
  });
  const port = await listenOnLoopback(server);
  return {
    url: `http://127.0.0.1:${port}/secret-of-the-url`,
    stop: () => closeAtOnce(server),
  };
}
