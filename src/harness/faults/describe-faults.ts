import { z } from "zod";
import {
  examples,
  type FaultKind,
  type FaultPlace,
  facilitatorRoutes,
  faultTable,
  lasts,
  matchNames,
} from "./fault-spec.ts";

/** A field of a fault, as a form asks for it. */
export type FaultField = {
  name: string;
  means: string;
  type: "integer" | "string" | "boolean";
  needed: boolean;
  /** Whether it says which calls are hit, and not what happens to them. */
  isMatch: boolean;
  least: number | null;
  most: number | null;
  choices: readonly string[];
  example: string;
};

/** A kind of fault, as a form offers it. */
export type FaultDescription = {
  kind: FaultKind;
  means: string;
  places: readonly FaultPlace[];
  /** False for what happens once and cannot be removed. */
  lasts: boolean;
  fields: readonly FaultField[];
};

/** What is told of all faults: `GET /harness/faults/kinds`. */
export type FaultForm = {
  kinds: readonly FaultDescription[];
  /** What `method` may be for faults of requests to the facilitator. */
  facilitatorRoutes: readonly string[];
};

/** What JSON Schema says of a field. */
const property = z.object({
  type: z.enum(["integer", "string", "boolean"]),
  description: z.string(),
  minimum: z.number().nullable().default(null),
  maximum: z.number().nullable().default(null),
  enum: z.array(z.string()).default([]),
});

const document = z.object({
  description: z.string(),
  properties: z.record(z.string(), z.unknown()),
  required: z.array(z.string()),
});

/** Every kind of fault with its fields, from the table by which faults are read. */
export function describeFaults(): FaultForm {
  const kinds = faultTable.map(({ kind, schema, places }) => {
    const { description, properties, required } = document.parse(z.toJSONSchema(schema, { io: "input" }));
    const fields = Object.entries(properties)
      .filter(([name]) => name !== "network" && name !== "kind")
      .map(([name, raw]): FaultField => {
        const { type, description: means, minimum, maximum, enum: choices } = property.parse(raw);
        return {
          ...{ name, means, type, choices },
          ...{ least: minimum, most: maximum },
          needed: required.includes(name),
          isMatch: matchNames.has(name),
          example: examples[name] ?? "",
        };
      });
    return { kind, means: description, places, lasts: lasts(kind), fields };
  });
  return { kinds, facilitatorRoutes };
}

/** What a field means, after the kinds that have it: of all that can be matched, after none. */
export function describeField(name: string): string {
  const { kinds } = describeFaults();
  const having = kinds.flatMap(({ kind, fields }) =>
    fields.filter((field) => field.name === name).map(({ means, isMatch }) => ({ kind, means, isMatch })),
  );
  const [first] = having;
  if (first === undefined) return "";
  return first.isMatch ? first.means : `${having.map(({ kind }) => kind).join(", ")}: ${first.means}`;
}
