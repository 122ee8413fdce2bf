import type { SeenResource } from "./read-resource.ts";

type Resource = SeenResource["resource"];

/** Ways to pay for one resource. */
const mostAccepts = 10;

/** The newest description counts; earlier ways to pay of the same protocol version stay. */
export function mergeResource(earlier: Resource | undefined, seen: Resource): Resource {
  if (earlier === undefined || earlier.x402Version !== seen.x402Version) return seen;
  const isSeen = ({ network, asset }: Resource["accepts"][number]) =>
    seen.accepts.some((one) => one.network === network && one.asset === asset);
  const others = earlier.accepts.filter((one) => !isSeen(one));
  return { ...seen, accepts: [...seen.accepts, ...others].slice(0, mostAccepts) };
}
