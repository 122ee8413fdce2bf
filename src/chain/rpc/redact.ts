/** Anything shorter in a URL is a version or a chain's name, not a key. */
const shortestSecret = 8;

/**
 * Makes a function that removes what an RPC URL may keep secret (keys in path, query, user or host name) from
 * texts of others, such as a provider's error messages, which sometimes quote the URL.
 */
export function createRedactor(urls: readonly URL[]): (text: string) => string {
  const secrets = urls
    .flatMap((url) => [
      url.href,
      url.host,
      url.hostname,
      url.username,
      url.password,
      ...url.pathname.split("/"),
      ...url.searchParams.values(),
    ])
    .filter((secret) => secret.length >= shortestSecret)
    .sort((a, b) => b.length - a.length);
  return (text) => secrets.reduce((redacted, secret) => redacted.replaceAll(secret, "…"), text);
}
