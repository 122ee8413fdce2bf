import type { Database } from "../database.ts";

/** One step of the schema. Once released it never changes, nor does its place among the others. */
export type Migration = {
  /** A number that counts up, and a word. */
  name: string;
  /** What it does, for the operator who runs it. */
  summary: string;
  up(db: Database): Promise<void>;
};
