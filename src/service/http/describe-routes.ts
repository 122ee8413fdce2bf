import { z } from "zod";

/** A route of a local server besides those of the facilitator, for the OpenAPI document. */
export type LocalRoute = {
  /** `operationId`, from which clients are generated. */
  id: string;
  summary: string;
  /** What it reads, as JSON. */
  body?: z.ZodType;
  /** What it answers, in a few words. */
  answer: string;
  answerSchema?: object;
  status?: 200 | 204;
};

/** The paths of an OpenAPI document, of routes by method and path: `POST /__scenario`. */
export function describeRoutes(routes: Readonly<Record<string, LocalRoute>>): Record<string, object> {
  const paths: Record<string, object> = {};
  for (const [route, described] of Object.entries(routes)) {
    const [method = "", path = ""] = route.split(" ");
    paths[path] = { ...paths[path], [method.toLowerCase()]: operationOf(path, described) };
  }
  return paths;
}

function operationOf(path: string, { id, summary, body, answer, answerSchema, status = 200 }: LocalRoute) {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
  const json = (schema: object) => ({ content: { "application/json": { schema } } });
  const parameters = names.map((name) => ({ name, in: "path", required: true, schema: { type: "string" } }));
  const isEmpty = status === 204;
  return {
    operationId: id,
    summary,
    ...(parameters.length > 0 && { parameters }),
    ...(body !== undefined && {
      requestBody: { required: true, ...json(z.toJSONSchema(body, { io: "input", unrepresentable: "any" })) },
    }),
    responses: {
      [status]: { description: answer, ...(!isEmpty && json(answerSchema ?? {})) },
      "400": { description: "The request is wrong: `error` says why, and `hints` what to do" },
    },
  };
}
