import { z } from "zod";
import type { FaultField, FaultForm } from "../../observe/studio/fault-form.ts";
import { examples, facilitatorRoutes, faultTable, lasts, matchNames } from "./fault-spec.ts";

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
