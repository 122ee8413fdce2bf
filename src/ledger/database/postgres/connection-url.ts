import { isIP } from "node:net";

/*
 * What `pg` makes of a URL, without what it gets wrong: it prints a warning of several lines about `sslmode`, and
 * calls every parameter it cannot use a broken URL.
 */

/**
 * The URL as `pg` is given it: `sslmode` is verify-full where it is prefer, require or verify-ca. To `pg` these mean the
 * same, and it says at length that they will not one day.
 */
export function pinSslMode(url: string): string {
  if (/[?&]uselibpqcompat=true(?:&|$)/.test(url)) return url;
  return url.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|$)/, "$1verify-full");
}

/** What is wrong with a URL that `pg` has thrown at. The error itself may hold the URL, and that the password. */
export function explainUrlError(error: unknown): string {
  // A file of sslrootcert, sslcert or sslkey.
  if (error instanceof Error && "path" in error && "syscall" in error) {
    return `names a file that cannot be read: ${error.path}`;
  }
  return "cannot be read; characters that mean something in a URL must be percent-encoded";
}

/**
 * The host that a Postgres URL sends passwords and payments to in plain text; null where it encrypts them, or where they
 * do not leave this machine. Null also for SQLite and for what is no URL of a database.
 */
export async function findPlainTextHost(url: string): Promise<string | null> {
  if (!/^postgres(?:ql)?:\/\//.test(url)) return null;
  const { default: pg } = await import("pg");
  try {
    const { host, ssl } = new pg.Client({ connectionString: pinSslMode(url) });
    return ssl || isOnThisMachine(host) ? null : host;
  } catch {
    return null;
  }
}

function isOnThisMachine(host: string): boolean {
  return (
    host === "" ||
    host === "localhost" ||
    // The folder of a Unix socket.
    host.startsWith("/") ||
    (isIP(host) === 4 && host.startsWith("127.")) ||
    host === "::1"
  );
}
