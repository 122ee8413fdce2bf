import type { Signer } from "../chain/signer.ts";
import type { Operators } from "../config/serve-config.ts";

/** Signers for the operators of a configuration, in their order. Each kind is loaded when it is used. */
export async function createSigners(operators: Operators): Promise<readonly [Signer, ...Signer[]]> {
  if (operators.kind === "local") {
    const { createLocalSigner } = await import("../chain/local-signer.ts");
    const [first, ...others] = operators.privateKeys;
    return [createLocalSigner(first), ...others.map(createLocalSigner)];
  }
  const { createRemoteSigner } = await import("../chain/remote-signer.ts");
  const { url, addresses } = operators;
  const [first, ...others] = addresses;
  return [
    createRemoteSigner({ url, address: first }),
    ...others.map((address) => createRemoteSigner({ url, address })),
  ];
}
