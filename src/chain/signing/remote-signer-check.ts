import type { TransactionSerializedEIP1559 } from "viem";
import { parseTransaction, serializeTransaction } from "viem/utils";
import { type Address, type Hex, isBytes, keccak256, sameAddress } from "../../protocol/hex.ts";
import { recoverSigner } from "./recover.ts";
import type { UnsignedTransaction } from "./signer.ts";

/**
 * Makes sure that a text is the given transaction, without value, signed by the given account; gives it back in lower
 * case.
 *
 * @throws Error that says in which respect it is not
 */
export function checkSignedTransaction(
  text: string,
  wanted: UnsignedTransaction,
  account: Address,
): TransactionSerializedEIP1559 {
  const raw = text.toLowerCase();
  if (!isEip1559(raw)) throw new Error("its answer is not a signed EIP-1559 transaction");
  const signed = parse(raw);

  const differs = (what: string) => new Error(`it signed another ${what} than it was asked to`);
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
