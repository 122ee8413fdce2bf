import { z } from "zod";
import { type Address, quantity } from "../../protocol/hex.ts";
import { createKeepAlivePost, HttpFailure } from "../../util/http-client.ts";
import { parseJson } from "../../util/json.ts";
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
  const post = createKeepAlivePost(parsed, { timeoutMs, maxResponseBytes });

  return async (from, transaction) => {
    const body = JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "eth_signTransaction",
      params: [toParameters(from, transaction)],
    });
    const text = await post(body)
      .catch((error: unknown) => {
        if (error instanceof HttpFailure && error.kind === "connection") return post(body);
        throw error;
      })
      .catch((error: unknown) => {
        throw explain(error);
      });
    const answer = answerSchema.safeParse(parseJson(text));
    if (!answer.success) throw new Error("its answer is not JSON-RPC");
    if ("result" in answer.data) return answer.data.result;
    const { code, message } = answer.data.error;
    throw new Error(`it refused: JSON-RPC error ${code ?? "without code"}: ${redact(message)}`);
  };
}

/** What went wrong, as the rest of a sentence about the signer. */
function explain(error: unknown): unknown {
  if (!(error instanceof HttpFailure)) return error;
  switch (error.kind) {
    case "timeout":
      return new Error(`it gave ${error.message}`);
    case "status":
      return new Error(`it answered with ${error.message}`);
    case "too_large":
      return new Error("it answered with too much");
    case "connection":
      return new Error(`the connection to it failed${error.code === undefined ? "" : ` (${error.code})`}`);
  }
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
