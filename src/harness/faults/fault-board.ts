import { z } from "zod";
import type { FaultField, FaultForm } from "../../observe/studio/harness-views.ts";
import {
  examples,
  type FaultSpec,
  facilitatorRoutes,
  faultTable,
  lasts,
  matchNames,
  readFaultSpec,
} from "./fault-spec.ts";

/**
 * A fault, how often it has hit, and the id by which it is removed. One of a chain has hit when it was set, and with each
 * request of the service that it concerns.
 */
export type FaultReport = FaultSpec & {
  id: string;
  fired: number;
  /** Where it has hit as often as it was to, and will not again. */
  usedUp?: true;
};

/** The faults of a running harness, as data: what its API, its control routes and the command line share. */
export type FaultBoard = {
  /**
   * Sets a fault. What happens at once and is over then, as a reorganization, is not listed.
   *
   * @throws ConfigurationError with everything that is wrong with the spec.
   */
  add(spec: unknown): Promise<FaultReport>;
  /** What is set, in the order in which it was. */
  list(): Promise<readonly FaultReport[]>;
  /** Ends a fault; whether there was one. Requests that it has kept waiting go on. */
  remove(id: string): Promise<boolean>;
  /** Ends all of them, the last one first. */
  clear(): Promise<void>;
};

const numbered = z.looseObject({ id: z.string(), fired: z.int(), usedUp: z.literal(true).optional() });

/** Reads the report of a fault from another process. Throws what is wrong with it. */
export function readFaultReport(raw: unknown): FaultReport {
  const { id, fired, usedUp, ...spec } = numbered.parse(raw);
  // The other process knows its networks.
  const names = typeof spec.network === "string" ? [spec.network] : [];
  return { ...readFaultSpec(spec, names), id, fired, ...(usedUp && { usedUp }) };
}

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
