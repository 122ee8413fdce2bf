import { z } from "zod";
import { readCursor } from "./cursor.ts";
import { builtInNetworks, type NetworkRegistry } from "./networks.ts";
import { largestPage, queryFaults, usualPage } from "./parse-settlement-query.ts";
import { address } from "./primitives.ts";
import { settlementStates } from "./settlement-states.ts";

const time = z
  .union([z.iso.datetime({ offset: true }), z.iso.date()], queryFaults.time)
  .transform((text) => Date.parse(text));

/** The parameters of a listing, as a query has them. */
export const createSettlementQuerySchema = (known: NetworkRegistry) =>
  z.strictObject({
    network: z
      .string()
      .transform((name, context) => {
        const network = known.find(name, 1) ?? known.find(name, 2);
        if (network !== undefined) return network.name;
        context.addIssue(queryFaults.network);
        return z.NEVER;
      })
      .meta({ description: "By its name in either version of the protocol", example: "base" })
      .optional(),
    state: z.enum(settlementStates, queryFaults.state).optional(),
    payer: address.meta({ description: "The payer's address" }).optional(),
    from: time
      .meta({ description: "Claimed at or after this time, ISO 8601", example: "2026-11-01" })
      .optional(),
    to: time.meta({ description: "Claimed before this time, ISO 8601", example: "2026-12-01" }).optional(),
    limit: z
      .string()
      .regex(/^[1-9]\d{0,2}$/, queryFaults.limit)
      .transform(Number)
      .refine((limit) => limit <= largestPage, queryFaults.limit)
      .meta({ description: `Settlements on the page, at most ${largestPage}; ${usualPage} by default` })
      .optional(),
    cursor: z
      .string()
      .transform((text, context) => {
        const cursor = readCursor(text);
        if (cursor !== null) return cursor;
        context.addIssue(queryFaults.cursor);
        return z.NEVER;
      })
      .meta({ description: "`next` of the page before" })
      .optional(),
  });

/** {@link createSettlementQuerySchema} of the built-in networks. */
export const settlementQuerySchema = createSettlementQuerySchema(builtInNetworks);
