import type { Signer } from "../../chain/signing/signer.ts";
import type { Operators, ServeConfig } from "../../config/serve-config.ts";
import type { Address } from "../../protocol/hex.ts";

/** Signers for the operators of a configuration, in their order. Each kind is loaded when it is used. */
export async function createSigners(operators: Operators): Promise<readonly [Signer, ...Signer[]]> {
  if (operators.kind === "local") {
    const { createLocalSigner } = await import("../../chain/signing/local-signer.ts");
    const [first, ...others] = operators.privateKeys;
    return [createLocalSigner(first), ...others.map(createLocalSigner)];
  }
  const { createRemoteSigner } = await import("../../chain/signing/remote-signer.ts");
  const { url, addresses } = operators;
  const [first, ...others] = addresses;
  return [
    createRemoteSigner({ url, address: first }),
    ...others.map((address) => createRemoteSigner({ url, address })),
  ];
}

/** The account of the recoverer, where there is one. */
export async function recovererOf({ recovererKey }: ServeConfig): Promise<Address | undefined> {
  if (recovererKey === undefined) return undefined;
  const { privateKeyToAddress } = await import("viem/accounts");
  return privateKeyToAddress(recovererKey);
}
