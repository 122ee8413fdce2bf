import type { Logger } from "pino";
import type { LocalOrganization } from "../../config/organization-file.ts";
import type { Address } from "../../protocol/hex.ts";
import type { CorsOrigins } from "../../protocol/routes.ts";
import type { PayToPolicy } from "../../protocol/signed-payment.ts";
import type { StartChainsOptions } from "../setup/chains.ts";
import type { SavedHarness } from "./rewind.ts";

/** A control request that was done, with its body as it came. */
export type ControlAction = { path: string; body: unknown };

/** How chains and service are started. */
export type StartOptions = Omit<StartChainsOptions, "genesisTime" | "saved" | "meanwhile"> & {
  host: string;
  /** 0 for any free port. */
  port: number;
  settleWaitMs?: number | undefined;
  /** Where the local organization is paid; at a published account by default. */
  recipient?: Address | undefined;
  /** Where payments may go; to the facilitator contract alone by default. */
  payTo?: PayToPolicy | undefined;
  /** Organizations besides the local one and those of the published keys. */
  organizations?: readonly LocalOrganization[] | undefined;
  /** What chains and ledger go on with, and what is done with theirs when this ends as it was asked to. */
  state?: { saved: SavedHarness | undefined; save(state: SavedHarness): void | Promise<void> } | undefined;
  logger: Logger;
  /** Whether direct submissions are paid out, as in production with a recoverer's key; they are by default. */
  recovery?: boolean;
  /** Whether a journal is kept of what the service does, which costs it some time; not by default. */
  journal?: boolean;
  /** Is told of each control request that was done: see `control.ts`. */
  onAction?: ((action: ControlAction) => void) | undefined;
  /** Whether the studio is served: `/studio`, `/payments` and `/events`; not by default. */
  studio?: boolean;
  /** The origins of web pages that may call the facilitator; none by default. */
  corsOrigins?: CorsOrigins | undefined;
  /** Whether it is kept, and shown, what organizations were paid for; not by default. */
  discovery?: boolean | undefined;
  /** Makes runs repeatable: the chains have a clock of their own, and authorization nonces follow from the seed. */
  seed?: number | undefined;
  /**
   * Lets requests without an API key act for the local organization, and `POST /close` call `onClose` when it is
   * answered; by default keys are needed, and there is no such route.
   */
  open?: { onClose(): void } | undefined;
};
