import type { Logger } from "pino";
import type { Signer } from "../../chain/signing/signer.ts";
import type { ServeConfig } from "../../config/serve-config.ts";

export type ServeOptions = { config: ServeConfig; signers: readonly [Signer, ...Signer[]]; logger: Logger };
