import type { FixtureRequest } from "../../fixtures/engine/answer.ts";

/** How an API key is sent: as it is, after “Bearer ”, or not at all. */
export const authKinds = ["bare", "bearer", "none"] as const;

export type Auth = (typeof authKinds)[number];

/** How a facilitator is spoken to. */
export type Access = {
  /** What its paths begin with. */
  prefix: "/v1" | "";
  auth: Auth;
  /** The header that the API key is sent in, in lower case. */
  authHeader: string;
};

/** A request of the table as a facilitator takes it: at its path, with the API key in its place. */
export function adaptRequest(request: FixtureRequest, { prefix, auth, authHeader }: Access): FixtureRequest {
  const { authorization, ...headers } = request.headers;
  const sent = auth === "none" ? undefined : authorization;
  const isBare = auth === "bearer" && sent !== undefined && !sent.includes(" ");
  return {
    ...request,
    path: request.path.replace(/^\/v1/, prefix),
    headers: { ...headers, ...(sent !== undefined && { [authHeader]: isBare ? `Bearer ${sent}` : sent }) },
  };
}
