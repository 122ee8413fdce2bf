/** How long a settle waits: until a time in unix milliseconds, or until no caller waits any more. */
export type Waiting = { now: () => number; deadline: number; signal: AbortSignal };
