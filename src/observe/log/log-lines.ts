import { z } from "zod";
import { parseJson } from "../../util/json.ts";
import { escapeControls, escapeControlsInText } from "../../util/text.ts";

/** An error as pino writes it; see log/logger.ts. */
const describedError = z.object({
  message: z.string(),
  hints: z.array(z.string()).default([]),
  stack: z.string().optional(),
});

const logLine = z.looseObject({
  level: z.number(),
  time: z.number(),
  msg: z.string().default(""),
  err: describedError.optional(),
});

/** Fields for log collectors, of no use to a person at a terminal. */
const uninteresting = ["level", "time", "msg", "err", "pid", "hostname", "reqId"];

const levels: Readonly<Record<number, string>> = {
  10: "trace",
  20: "debug",
  30: "info",
  40: "warn",
  50: "error",
  60: "fatal",
};

/** Renders a line of the service's log for a person: time of day, level, message, and the rest as `name=value`. */
export function renderLogLine(json: string): string {
  const parsed = logLine.safeParse(parseJson(json));
  if (!parsed.success) return escapeControlsInText(json.trimEnd());
  const { level, time, msg, err, ...rest } = parsed.data;
  const details = Object.entries(rest)
    .filter(([name]) => !uninteresting.includes(name))
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  const at = new Date(time).toTimeString().slice(0, 8);
  return (
    [
      [at, levels[level] ?? String(level), msg, ...details].join(" "),
      ...(err === undefined ? [] : [`because: ${err.message}`, ...err.hints, ...stackOf(level, err.stack)]),
    ]
      // Fields and errors may quote nodes and clients.
      .map(escapeControls)
      .join("\n  ")
  );
}

/** True if a line of the service's log is a warning. */
export function isWarning(json: string): boolean {
  return logLine.safeParse(parseJson(json)).data?.level === 40;
}

/** Only unexpected errors show a stack; the hints explain the others. */
function stackOf(level: number, stack: string | undefined): readonly string[] {
  return level < 50 || stack === undefined
    ? []
    : stack
        .split("\n")
        .slice(1)
        .map((line) => line.trim());
}
