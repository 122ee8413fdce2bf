import type { Logger } from "pino";
import type { Signer } from "../../chain/signing/signer.ts";
import type { ServeConfig } from "../../config/serve-config.ts";
import type { Database } from "../../database/database.ts";

export type ServeOptions = {
  config: ServeConfig;
  signers: readonly [Signer, ...Signer[]];
  /** Open and up to date; closed with the service. */
  database: Database;
  logger: Logger;
};
