import { randomBytes } from "node:crypto";
import type { FixtureEngine } from "../fixtures/engine/engine.ts";
import { createBoundedMap } from "../util/bounded-map.ts";

/** How a session may differ from its server. */
export type SessionOptions = {
  /** The time, as it is at the start and until `advance-time`; that of the server by default. */
  clock?: Date;
};

/** A facilitator of its own within a mock server: its settlements, scenarios, calls and time are its own. */
export type Session = { id: string; engine: FixtureEngine };

/** The facilitators of a mock server: the one at its root, and those of sessions. */
export type Sessions = {
  readonly root: FixtureEngine;
  create(options?: SessionOptions): Session;
  find(id: string): FixtureEngine | undefined;
  /** Ends a session; false when there is none. */
  end(id: string): boolean;
  readonly count: number;
};

/** Test runs may leave sessions behind: beyond this number the one unused for longest is removed. */
export const mostSessions = 2_000;

/** @param createEngine makes a facilitator as the server's options say */
export function createSessions(createEngine: (options: SessionOptions) => FixtureEngine): Sessions {
  const engines = createBoundedMap<string, FixtureEngine>(mostSessions);
  return {
    root: createEngine({}),
    create(options = {}) {
      const engine = createEngine(options);
      const id = randomBytes(8).toString("hex");
      engines.set(id, engine);
      return { id, engine };
    },
    find(id) {
      const engine = engines.get(id);
      if (engine !== undefined) engines.renew(id, engine);
      return engine;
    },
    end: (id) => engines.delete(id),
    get count() {
      return engines.size;
    },
  };
}

const prefix = "/__sessions";

/** Where a session's facilitator is, below the server's address. */
export function sessionPath(id: string): string {
  return `${prefix}/${id}`;
}

/** The session that a path is in, and the path below it; undefined for a path outside of sessions. */
export function splitSessionPath(url: string): { id: string; path: string } | undefined {
  const [, id, path] = /^\/__sessions\/([^/?]+)(\/.*)$/.exec(url) ?? [];
  return id === undefined || path === undefined ? undefined : { id, path };
}
