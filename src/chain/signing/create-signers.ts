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

/** Signers for the operators of a configuration, in their order. Each kind is loaded when it is used. */
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
  /** Where it answers JSON-RPC. A user name and password in it are sent as basic authentication. */
  url: string;
  address: Address;
  /** Milliseconds for one answer; 5 s by default. The ledger waits for it, so other payments do as well. */
  timeoutMs?: number;
};

/**
 * A signer whose key is elsewhere, behind JSON-RPC `eth_signTransaction`: Web3Signer, a bridge to a key management
 * service, or a node that holds the key.
 *
 * It is asked to sign, not trusted to: what comes back is used only if it is, byte for byte, the transaction that was
 * asked for, signed by the account. Its URL, which may hold a password, is in no error and no log.
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

type Ask = (from: Address, transaction: TransactionFields) => Promise<string>;

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

/** The failure, as the rest of a sentence about the signer. */
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
 * Makes sure that a text is the given transaction, without value, signed by the given account; gives it back in lower
 * case.
 *
 * @throws Error that says in which respect it is not
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
  // Whatever else could be in there, such as an access list, is not in ours.
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
