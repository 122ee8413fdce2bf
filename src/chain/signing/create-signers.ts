import type { Operators } from "../../config/serve-config.ts";
import type { Signer } from "./signer.ts";

/** Signers for the operators of a configuration, in their order. Each kind is loaded when it is used. */
export async function createSigners(operators: Operators): Promise<readonly [Signer, ...Signer[]]> {
  if (operators.kind === "local") {
    const { createLocalSigner } = await import("./local-signer.ts");
    const [first, ...others] = operators.privateKeys;
    return [createLocalSigner(first), ...others.map(createLocalSigner)];
  }
  const { createRemoteSigner } = await import("./remote-signer.ts");
  const { url, addresses } = operators;
  const [first, ...others] = addresses;
  return [
    createRemoteSigner({ url, address: first }),
    ...others.map((address) => createRemoteSigner({ url, address })),
  ];
}
