import { z } from "zod";
import { settlementStates } from "./answers.ts";
import { readCursor } from "./cursor.ts";
import { builtInNetworks, type NetworkRegistry } from "./networks.ts";
import { address } from "./primitives.ts";

const largestPage = 100;
/** Settlements on a page, unless the query says how many. */
export const usualPage = 50;

const time = z
  .union(
    [z.iso.datetime({ offset: true }), z.iso.date()],
    "must be an ISO 8601 date, or date and time with zone",
  )
  .transform((text) => Date.parse(text));

/** The parameters of a listing, as a query has them. */
export const createSettlementQuerySchema = (known: NetworkRegistry) =>
  z.strictObject({
    network: z
      .string()
      .transform((name, context) => {
        const network = known.find(name, 1) ?? known.find(name, 2);
        if (network !== undefined) return network.name;
        context.addIssue("is not a network of this service");
        return z.NEVER;
      })
      .meta({ description: "By its name in either version of the protocol", example: "base" })
      .optional(),
    state: z.enum(settlementStates, `must be one of ${settlementStates.join(", ")}`).optional(),
    payer: address.meta({ description: "The payer's address" }).optional(),
    from: time
      .meta({ description: "Claimed at or after this time, ISO 8601", example: "2026-11-01" })
      .optional(),
    to: time.meta({ description: "Claimed before this time, ISO 8601", example: "2026-12-01" }).optional(),
    limit: z
      .string()
      .regex(/^[1-9]\d{0,2}$/, `must be a whole number from 1 to ${largestPage}`)
      .transform(Number)
      .refine((limit) => limit <= largestPage, `must be a whole number from 1 to ${largestPage}`)
      .meta({ description: `Settlements on the page, at most ${largestPage}; ${usualPage} by default` })
      .optional(),
    cursor: z
      .string()
      .transform((text, context) => {
        const cursor = readCursor(text);
        if (cursor !== null) return cursor;
        context.addIssue("is none that this service gave");
        return z.NEVER;
      })
      .meta({ description: "`next` of the page before" })
      .optional(),
  });

/** {@link createSettlementQuerySchema} of the built-in networks. */
export const settlementQuerySchema = createSettlementQuerySchema(builtInNetworks);
