import type { TestProject } from "vitest/node";
import { startPostgres } from "./postgres.ts";

/** The server for all tests in a run, or why there is none. */
export type RunningPostgres = { pid: number; port: number } | { error: string };

declare module "vitest" {
  interface ProvidedContext {
    postgres?: RunningPostgres;
  }
}

/** Starts one Postgres for all files in a project, because creating a server's files takes seconds of CPU. */
export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  try {
    const { pid, port, stop } = await startPostgres();
    project.provide("postgres", { pid, port });
    return stop;
  } catch (error) {
    // The tests that need the server report this; the others run without it.
    project.provide("postgres", { error: String(error instanceof Error ? error.message : error) });
    return undefined;
  }
}
