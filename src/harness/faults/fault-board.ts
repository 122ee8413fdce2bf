import { z } from "zod";
import { type FaultSpec, readFaultSpec } from "./fault-spec.ts";

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
