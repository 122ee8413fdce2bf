import { z } from "zod";
import type { Address } from "../../protocol/hex.ts";
import { parseJson } from "../../util/json.ts";
import { quantity } from "../rpc/read-hex.ts";
import { createRedactor } from "../rpc/redact.ts";
import type { UnsignedTransaction } from "./signer.ts";

/** More than any transaction that we sign takes, twice. */
const maxResponseBytes = 1_048_576;

/** Most signers give the bytes; nodes give them together with what they decode to. */
const answerSchema = z.union([
  z.object({ result: z.string() }),
  z.object({ result: z.object({ raw: z.string() }).transform(({ raw }) => raw) }),
  z.object({
    error: z.object({ code: z.number().optional(), message: z.string().default("") }),
  }),
]);

type Ask = (from: Address, transaction: UnsignedTransaction) => Promise<string>;

/**
 * Makes the function that asks a signer for a signed transaction, and gives what it says: any text. Asked for the same
 * transaction twice it signs the same, so a connection that breaks is tried once more.
 */
export function askRemoteSigner({ url, timeoutMs }: { url: string; timeoutMs: number }): Ask {
  const parsed = URL.parse(url);
  if (parsed === null) throw new TypeError("the URL of the remote signer is not valid");
  const redact = createRedactor([parsed]);
  const { target, headers } = splitCredentials(parsed);

  return async (from, transaction) => {
    const body = JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "eth_signTransaction",
      params: [toParameters(from, transaction)],
    });
    const text = await post(body).catch((error: unknown) => {
      if (error instanceof ConnectionFailed) return post(body);
      throw error;
    });
    const answer = answerSchema.safeParse(parseJson(text));
    if (!answer.success) throw new Error("its answer is not JSON-RPC");
    if ("result" in answer.data) return answer.data.result;
    const { code, message } = answer.data.error;
    throw new Error(`it refused: JSON-RPC error ${code ?? "without code"}: ${redact(message)}`);
  };

  async function post(body: string): Promise<string> {
    try {
      const signal = AbortSignal.timeout(timeoutMs);
      const response = await fetch(target, { method: "POST", headers, body, signal, redirect: "error" });
      if (!response.ok) throw new BadAnswer(`it answered with HTTP ${response.status}`);
      return await readText(response);
    } catch (error) {
      throw explain(error, timeoutMs);
    }
  }
}

/** The server was not reached, or the connection broke off. */
class ConnectionFailed extends Error {}

/** The server answered, but not as it should; its message can be shown. */
class BadAnswer extends Error {}

/** What went wrong, without the words of `fetch`, which name the address. */
function explain(error: unknown, timeoutMs: number): Error {
  if (error instanceof BadAnswer) return error;
  if (error instanceof DOMException && error.name === "TimeoutError") {
    return new Error(`it gave no answer within ${timeoutMs} ms`);
  }
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  const code = cause instanceof Error && "code" in cause ? ` (${String(cause.code)})` : "";
  return new ConnectionFailed(`the connection to it failed${code}`);
}

/** `fetch` takes no URL with a user name in it. */
function splitCredentials(url: URL): { target: URL; headers: Record<string, string> } {
  const target = new URL(url);
  const headers: Record<string, string> = { "content-type": "application/json" };
  if (url.username !== "" || url.password !== "") {
    const user = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
    headers.authorization = `Basic ${Buffer.from(user).toString("base64")}`;
    target.username = "";
    target.password = "";
  }
  return { target, headers };
}

async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > maxResponseBytes) throw new BadAnswer("it answered with too much");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function toParameters(from: Address, transaction: UnsignedTransaction): Record<string, string> {
  const { chainId, nonce, to, data, gas, maxFeePerGas, maxPriorityFeePerGas } = transaction;
  return {
    from,
    to,
    data,
    value: "0x0",
    nonce: quantity(nonce),
    gas: quantity(gas),
    maxFeePerGas: quantity(maxFeePerGas),
    maxPriorityFeePerGas: quantity(maxPriorityFeePerGas),
    chainId: quantity(chainId),
  };
}
