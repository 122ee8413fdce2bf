import { type Address, keccak256 } from "../../protocol/hex.ts";
import { KitError } from "../../util/errors.ts";
import { checkSignedTransaction } from "./remote-signer-check.ts";
import { askRemoteSigner } from "./remote-signer-rpc.ts";
import type { Signer } from "./signer.ts";

export type RemoteSignerOptions = {
  /** Where it answers JSON-RPC. A user name and password in it are sent as basic authentication. */
  url: string;
  /** The account it signs for. */
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
