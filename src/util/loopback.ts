/** Returns true if what is sent to a URL stays on this machine. */
export function isLoopbackUrl(text: string): boolean {
  return isLoopbackHost(URL.parse(text)?.hostname.replace(/^\[|\]$/g, "") ?? "");
}

/** Returns true if what listens on a host can be reached from this machine alone. */
export function isLoopbackHost(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host);
}
