/** Returns true if requests to a URL stay on this machine. */
export function isLoopbackUrl(text: string): boolean {
  return isLoopbackHost(URL.parse(text)?.hostname.replace(/^\[|\]$/g, "") ?? "");
}

/** Returns true if a server on this host can be reached from this machine only. */
export function isLoopbackHost(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host);
}
