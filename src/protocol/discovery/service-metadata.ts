import type { DiscoveredResource } from "./discovery.ts";

/** What a resource says about its service. */
type ServiceMetadata = Pick<DiscoveredResource, "serviceName" | "tags" | "iconUrl">;

const printable = /^[\x20-\x7e]{1,32}$/;
const mostTags = 5;
const longestIconUrl = 2_048;
const loopbackNames = /^(localhost|localhost\.localdomain|ip6-localhost|ip6-loopback)\.?$/i;

/** Reads the members by the rules of the extension `bazaar`: invalid ones are left out. */
export function readServiceMetadata(resource: {
  serviceName?: unknown;
  tags?: unknown;
  iconUrl?: unknown;
}): ServiceMetadata {
  const { serviceName, iconUrl } = resource;
  const tags = readTags(resource.tags);
  return {
    ...(isPrintable(serviceName) && { serviceName }),
    ...(tags.length > 0 && { tags }),
    ...(isIconUrl(iconUrl) && { iconUrl }),
  };
}

function isPrintable(text: unknown): text is string {
  return typeof text === "string" && printable.test(text);
}

function readTags(tags: unknown): string[] {
  if (!Array.isArray(tags)) return [];
  const found = new Map<string, string>();
  for (const tag of tags.slice(0, 100)) {
    if (!isPrintable(tag) || found.has(tag.toLowerCase())) continue;
    found.set(tag.toLowerCase(), tag);
  }
  return [...found.values()].slice(0, mostTags);
}

/** A URL with a host name: an IP address could lead readers of the catalogue into their own network. */
function isIconUrl(text: unknown): text is string {
  if (typeof text !== "string" || text.length > longestIconUrl || /\p{Cc}/u.test(text)) return false;
  const url = URL.parse(text);
  if (url === null || !/^https?:\/\//i.test(text) || url.username !== "" || url.password !== "") return false;
  // The parser has decoded the host and made numbers of every spelling into dotted ones.
  return !/^(\d+\.){3}\d+$|^\[|^\d+$|^0x[0-9a-f]*$/i.test(url.hostname) && !loopbackNames.test(url.hostname);
}
