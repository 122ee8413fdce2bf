import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";

/**
 * Ends child processes when this process is gone, even after `kill -9`, which leaves no chance to clean up. A small
 * separate shell holds the read end of a pipe. The kernel closes the write end together with this process; everything
 * still guarded then gets SIGTERM, and SIGKILL half a second later. It is a shell because `killall -9 node` ends every
 * Node process at once; a Node process is used only if there is no shell.
 *
 * | State | Meaning | Authority |
 * |---|---|---|
 * | guarded | dies with this process | {@link Watchdog.guard}, by the parent that started it |
 * | released | ended, its pid may be another process's | {@link Watchdog.release} |
 */
export type Watchdog = {
  readonly pid: number | undefined;
  /**
   * Ends the process with this one. It must be a child that has not been reaped, so that the pid is certainly its own.
   * If another process gets the pid later, the start time tells them apart, on systems with /proc.
   */
  guard(pid: number, startTime?: string): void;
  /**
   * Ends the process and its whole group with this one, even if the process itself has ended by then. It must have been
   * started with `detached: true`. On Windows, which has no process groups, only the process is guarded.
   */
  guardGroup(pid: number): void;
  /** Forgets a process or group that has ended. */
  release(pid: number): void;
  /** Closes the watchdog, which first ends everything that is still guarded. */
  close(): Promise<void>;
};

const shell = "/bin/sh";

/** Starts a watchdog. It does not keep this process alive. */
export function startWatchdog(hasShell = existsSync(shell)): Watchdog {
  // The function's own text is the script: a separate file would have another name once compiled, and with type
  // stripping would take twice as long to start.
  const [file, args] = hasShell
    ? [shell, ["-c", watchScript, "x402-kit-watchdog"]]
    : [process.execPath, ["--eval", `(${watch.toString()})()`]];
  const child = spawn(file, args, {
    // In a separate process group: Ctrl-C in a terminal goes to the whole group of the parent.
    detached: process.platform !== "win32",
    // Without NODE_OPTIONS: loaders, inspectors and coverage are for the parent only.
    env: { PATH: process.env.PATH ?? "/usr/bin:/bin" },
    stdio: ["pipe", "ignore", "ignore"],
    windowsHide: true,
  });
  child.unref();
  // A watchdog that could not be started or was killed guards nothing, but is no reason to fail.
  child.on("error", () => {});
  child.stdin.on("error", () => {});
  unref(child.stdin);

  const send = (verb: "guard" | "group" | "release", pid: number, startTime = "") => {
    if (child.stdin.writable) child.stdin.write(`${verb} ${pid} ${startTime}\n`);
  };
  return {
    pid: child.pid,
    guard: (pid, startTime = processStartTime(pid)) => send("guard", pid, startTime),
    guardGroup: (pid) => send(process.platform === "win32" ? "guard" : "group", pid, processStartTime(pid)),
    release: (pid) => send("release", pid),
    async close() {
      if (hasExited(child)) return;
      child.ref();
      child.stdin.end();
      await once(child, "exit");
    },
  };
}

/**
 * When a process started, in the kernel's clock ticks since boot: together with the pid this identifies a process for
 * good. Undefined without /proc, or if there is no such process.
 */
export function processStartTime(pid: number): string | undefined {
  try {
    // The second field is the name in parentheses, which may contain spaces; the start time is the 22nd, the 20th after it.
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    return undefined;
  }
}

function hasExited(child: ChildProcess): boolean {
  return child.pid === undefined || child.exitCode !== null || child.signalCode !== null;
}

function unref(stream: object): void {
  if ("unref" in stream && typeof stream.unref === "function") stream.unref();
}

/**
 * {@link watch} for a shell: reads the same lines, and ignores the same signals. The start time is the 22nd field of
 * `/proc/PID/stat`, the 20th after the name in parentheses.
 */
const watchScript = `
set -f
trap '' INT TERM HUP
guarded=
while read -r verb pid start; do
  case $verb in
    guard) guarded="$guarded $pid:$start" ;;
    group) guarded="$guarded -$pid:$start" ;;
    *)
      others=
      for one in $guarded; do
        case $one in "$pid":* | "-$pid":*) ;; *) others="$others $one" ;; esac
      done
      guarded=$others
      ;;
  esac
done
is_same() {
  [ -n "$2" ] || return 0
  # A group outlives its leader, and its number is no other process's as long as it does.
  { read -r stat < "/proc/\${1#-}/stat"; } 2>/dev/null || { [ "$1" != "\${1#-}" ]; return; }
  set -- "$2" \${stat##*) }
  [ "\${21}" = "$1" ]
}
end() {
  for one in $guarded; do
    is_same "\${one%%:*}" "\${one#*:}" && kill -s "$1" -- "\${one%%:*}" 2>/dev/null
  done
}
end TERM
[ -z "$guarded" ] || { sleep 0.5; end KILL; }
`;

/**
 * The watchdog's whole program if there is no shell. It runs from its own source text, so it cannot use anything
 * outside the function.
 */
function watch(): void {
  const fs = process.getBuiltinModule("node:fs");
  const guarded = new Map<number, string>();
  const grace = 500;

  /** Groups are stored by their negative number, as `kill` expects. */
  const isSame = (pid: number, startTime: string) => {
    if (startTime === "") return true;
    try {
      const stat = fs.readFileSync(`/proc/${Math.abs(pid)}/stat`, "utf8");
      return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] === startTime;
    } catch {
      // A group outlives its leader, and no other process gets its number until it ends.
      return pid < 0;
    }
  };
  const end = (signal: "SIGTERM" | "SIGKILL") => {
    for (const [pid, startTime] of guarded) {
      try {
        if (isSame(pid, startTime)) process.kill(pid, signal);
        else guarded.delete(pid);
      } catch {
        guarded.delete(pid);
      }
    }
  };

  // Only the pipe ends the watchdog: a signal meant for its parent must not remove the guard.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
  let text = "";
  process.stdin.setEncoding("utf8");
  process.stdin.on("data", (chunk) => {
    const lines = (text + chunk).split("\n");
    text = lines.pop() ?? "";
    for (const line of lines) {
      const [verb, pid, startTime] = line.split(" ");
      if (verb === "guard") guarded.set(Number(pid), startTime ?? "");
      else if (verb === "group") guarded.set(-Number(pid), startTime ?? "");
      else for (const one of [Number(pid), -Number(pid)]) guarded.delete(one);
    }
  });
  process.stdin.on("close", () => {
    end("SIGTERM");
    if (guarded.size > 0) setTimeout(() => end("SIGKILL"), grace);
  });
}
