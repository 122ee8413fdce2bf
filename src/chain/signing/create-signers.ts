import type { TransactionSerializedEIP1559 } from "viem";
import { parseTransaction, serializeTransaction } from "viem/utils";
import { z } from "zod";
import type { Operators } from "../../config/serve-config.ts";
import type { TransactionFields } from "../../protocol/encode-transaction.ts";
import { type Address, type Hex, isBytes, keccak256, quantity, sameAddress } from "../../protocol/hex.ts";
import { KitError } from "../../util/errors.ts";
import { createKeepAlivePost, HttpFailure } from "../../util/http-client.ts";
import { parseJson } from "../../util/json.ts";
import { createRedactor } from "../rpc/rpc.ts";
import type { Signer } from "./local-signer.ts";
import { recoverSigner } from "./recover-signer.ts";

/** Creates the signers for a configuration's operators, in order. Each kind is loaded on demand. */
export async function createSigners(operators: Operators): Promise<readonly [Signer, ...Signer[]]> {
  if (operators.kind === "local") {
    const { createLocalSigner } = await import("./local-signer.ts");
    const [first, ...others] = operators.privateKeys;
    return [createLocalSigner(first), ...others.map(createLocalSigner)];
  }
  const { url, addresses } = operators;
  const [first, ...others] = addresses;
  return [
    createRemoteSigner({ url, address: first }),
    ...others.map((address) => createRemoteSigner({ url, address })),
  ];
}

export type RemoteSignerOptions = {
  /** The JSON-RPC URL. A user name and password in it are sent as basic authentication. */
  url: string;
  address: Address;
  /** The timeout of a request in milliseconds; 5 s by default. The ledger waits for it, and so do other payments. */
  timeoutMs?: number;
};

/**
 * Creates a signer whose key is elsewhere, behind JSON-RPC `eth_signTransaction`: Web3Signer, a bridge to a key
 * management service, or a node that holds the key.
 *
 * It is asked to sign but not trusted: the result is used only if it is, byte for byte, the requested transaction,
 * signed by the account. The URL, which may hold a password, appears in no error and no log.
 *
 * @throws KitError, by `signTransaction`, when it does not answer, refuses, or signs anything else
 *
 * @example
 * const signer = createRemoteSigner({ url: "https://signer.internal:9000", address: "0x857b…6b66" });
 */
export function createRemoteSigner({ url, address, timeoutMs = 5_000 }: RemoteSignerOptions): Signer {
  const ask = askRemoteSigner({ url, timeoutMs });
  return {
    address,
    async signTransaction(transaction) {
      const { maxFeePerGas, maxPriorityFeePerGas } = transaction;
      try {
        const raw = checkSignedTransaction(await ask(address, transaction), transaction, address);
        return { raw, hash: keccak256(raw), maxFeePerGas, maxPriorityFeePerGas };
      } catch (cause) {
        throw new KitError(`The remote signer did not sign for ${address}`, { cause });
      }
    },
  };
}

/** At least twice the size of any transaction that we sign. */
const maxResponseBytes = 1_048_576;

/** Most signers return the bytes; nodes return them together with the decoded transaction. */
const answerSchema = z.union([
  z.object({ result: z.string() }),
  z.object({ result: z.object({ raw: z.string() }).transform(({ raw }) => raw) }),
  z.object({
    error: z.object({ code: z.number().optional(), message: z.string().default("") }),
  }),
]);

type Ask = (from: Address, transaction: TransactionFields) => Promise<string>;

/**
 * Creates the function that requests a signed transaction and returns the signer's text unchecked. A broken connection
 * is retried once, because signing the same transaction twice gives the same result.
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

/** Returns an error whose message continues a sentence about the signer. */
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

function toParameters(from: Address, transaction: TransactionFields): Record<string, string> {
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

/**
 * Requires that a text is the given transaction, without value, signed by the given account; returns it in lower case.
 *
 * @throws Error that says how it differs
 */
export function checkSignedTransaction(
  text: string,
  wanted: TransactionFields,
  account: Address,
): TransactionSerializedEIP1559 {
  const raw = text.toLowerCase();
  if (!isEip1559(raw)) throw new Error("its answer is not a signed EIP-1559 transaction");
  const signed = parse(raw);

  const differs = (what: string) => new Error(`it signed another ${what} than requested`);
  if (signed.chainId !== wanted.chainId) throw differs("chain id");
  if ((signed.nonce ?? 0) !== wanted.nonce) throw differs("txNonce");
  if (!sameAddress(signed.to ?? "", wanted.to)) throw differs("recipient");
  if ((signed.value ?? 0n) !== 0n) throw differs("value");
  if ((signed.data ?? "0x") !== wanted.data.toLowerCase()) throw differs("calldata");
  if (signed.gas !== wanted.gas) throw differs("gas limit");
  if ((signed.maxFeePerGas ?? 0n) !== wanted.maxFeePerGas) throw differs("fee");
  if ((signed.maxPriorityFeePerGas ?? 0n) !== wanted.maxPriorityFeePerGas) throw differs("tip");

  const { r, s, yParity } = signed;
  if (r === undefined || s === undefined || (yParity !== 0 && yParity !== 1)) {
    throw new Error("it answered with a transaction that is not signed");
  }
  // Our transactions have nothing else, such as an access list.
  const unsigned = { type: "eip1559", value: 0n, ...wanted } as const;
  const expected = serializeTransaction(unsigned, { r, s, yParity });
  if (expected.toLowerCase() !== raw) throw new Error("it added something to the transaction");

  const signature: Hex = `0x${word(r)}${word(s)}${yParity === 0 ? "1b" : "1c"}`;
  const signer = recoverSigner(keccak256(serializeTransaction(unsigned)), signature);
  if (signer === undefined || !sameAddress(signer, account)) {
    throw new Error("it signed with another key than that of the account");
  }
  return raw;
}

function isEip1559(text: string): text is TransactionSerializedEIP1559 {
  return text.startsWith("0x02") && isBytes(text);
}

function parse(
  raw: TransactionSerializedEIP1559,
): ReturnType<typeof parseTransaction<TransactionSerializedEIP1559>> {
  try {
    return parseTransaction(raw);
  } catch {
    throw new Error("it answered with a transaction that cannot be decoded");
  }
}

function word(hex: Hex): string {
  return hex.slice(2).padStart(64, "0");
}
