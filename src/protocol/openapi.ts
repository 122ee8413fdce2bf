import { z } from "zod";
import {
  livenessSchema,
  problemSchema,
  readinessSchema,
  settleAnswerDocument,
  settlementListSchema,
  settlementViewSchema,
  supportedSchema,
  verifyAnswerDocument,
} from "./answers.ts";
import {
  discoveryListQuery,
  discoveryListSchema,
  discoverySearchQuery,
  discoverySearchSchema,
} from "./discovery/discovery-schemas.ts";
import { builtInNetworks, type NetworkRegistry } from "./networks.ts";
import { paymentIdentifierExtension, shopsResourcePattern } from "./payment-identifier.ts";
import { problemKinds, problemMediaType, problemTexts } from "./problems.ts";
import { createPaymentRequestSchema, type PayloadSchemas } from "./request-schemas.ts";
import { type Route, type RouteName, routes } from "./routes.ts";
import { largestPage, type SettlementQuery, settlementStates, usualPage } from "./settlement-query.ts";
import { forms } from "./wire-values.ts";

/** Other routes on the same address, for the OpenAPI document. */
export type ApiBeside = {
  paths: object;
  schemas: object;
  /** An example that works as it is, for the page that shows the document; only if all keys are published. */
  example?: { apiKey: string; payment?: object | undefined } | undefined;
};

/**
 * Builds the OpenAPI 3.1 document of the service, from the same schemas that it reads and writes with.
 *
 * @param payloads `paymentPayload.payload` of each payment method
 */
export function describeService(
  payloads: PayloadSchemas,
  known: NetworkRegistry = builtInNetworks,
  beside: ApiBeside = { paths: {}, schemas: {} },
): object {
  const { example } = beside;
  return {
    openapi: "3.1.0",
    info: {
      title: "x402 facilitator",
      version: "1",
      description:
        "Verifies and settles x402 payments of schemes “exact”, “upto” and “batch-settlement”. A verdict, good or bad, is status 200; 4xx and 5xx mean that there is none.",
    },
    servers: [{ url: "/" }],
    paths: {
      ...pathsOf(operationsOf(example?.payment)),
      ...beside.paths,
    },
    components: {
      securitySchemes: {
        apiKey: {
          type: "apiKey",
          in: "header",
          name: "Authorization",
          description: "The API key as it is, or after “Bearer ”",
          // Used by the page at /docs.
          ...(example !== undefined && { "x-scalar-secret-token": example.apiKey }),
        },
      },
      schemas: {
        PaymentRequest: schemaOf(createPaymentRequestSchema(known, payloads)),
        VerifyAnswer: schemaOf(verifyAnswerDocument),
        SettleAnswer: schemaOf(settleAnswerDocument),
        Settlement: schemaOf(settlementViewSchema),
        SettlementList: schemaOf(settlementListSchema),
        Supported: schemaOf(supportedSchema),
        DiscoveryList: schemaOf(discoveryListSchema),
        DiscoverySearch: schemaOf(discoverySearchSchema),
        Liveness: schemaOf(livenessSchema),
        Readiness: schemaOf(readinessSchema),
        Problem: schemaOf(problemSchema),
        ...beside.schemas,
      },
    },
  };
}

/** The operations of the service; `payment` is an example body for verify and settle. */
function operationsOf(payment: object | undefined): Readonly<Record<RouteName, object>> {
  const paymentBody = {
    required: true,
    content: {
      "application/json": {
        schema: reference("PaymentRequest"),
        ...(payment !== undefined && { example: payment }),
      },
    },
  };
  return {
    verify: {
      summary: "Judge a payment",
      ...withKey,
      parameters: [
        idempotencyKey(
          { type: "string", pattern: shopsResourcePattern },
          "Has a payment that was settled under the identifier it carries called valid",
        ),
      ],
      requestBody: paymentBody,
      responses: {
        ...answer("VerifyAnswer", "The verdict"),
        ...problems("400", "401", "403", "409", "413", "415", "429", "503"),
      },
    },
    settle: {
      summary: "Settle a payment, to the organization's recipient or straight to its payTo",
      ...withKey,
      parameters: [
        idempotencyKey(
          { type: "string" },
          `With the same key and the same body, the same success again for 24 hours; with ${paymentIdentifierExtension}; resource="…", the identifier that the payment carries takes its place, for that resource alone`,
        ),
      ],
      requestBody: paymentBody,
      responses: {
        ...answer("SettleAnswer", "The outcome", { Location: location }),
        ...problems("400", "401", "403", "409", "413", "415", "422", "429"),
        "503": problem("503", { Location: location, "X-Settlement-State": settlementState }),
      },
    },
    listSettlements: {
      summary: "The organization's settlements, newest first",
      ...withKey,
      parameters: settlementParameters,
      responses: {
        ...answer("SettlementList", "A page of settlements"),
        ...problems("400", "401", "429", "503"),
      },
    },
    getSettlement: {
      summary: "The state of a settlement",
      ...withKey,
      parameters: [{ name: "id", in: "path", required: true, schema: { type: "string" } }],
      responses: { ...answer("Settlement", "The settlement"), ...problems("401", "404", "429", "503") },
    },
    listResources: {
      summary: "What the organization was paid for, newest first; where DISCOVERY is on",
      ...withKey,
      parameters: queryOf(discoveryListQuery),
      responses: {
        ...answer("DiscoveryList", "A page of resources"),
        ...problems("400", "401", "404", "429", "503"),
      },
    },
    searchResources: {
      summary: "What the organization was paid for, by words; where DISCOVERY is on",
      ...withKey,
      parameters: queryOf(discoverySearchQuery),
      responses: {
        ...answer("DiscoverySearch", "A page of resources"),
        ...problems("400", "401", "404", "429", "503"),
      },
    },
    health: {
      summary: "The same as /livez, under its name in the public protocol",
      responses: answer("Liveness", "It does"),
    },
    livez: { summary: "Whether the process answers", responses: answer("Liveness", "It does") },
    readyz: {
      summary: "The health of the networks",
      parameters: [
        {
          name: "network",
          in: "query",
          schema: { type: "array", items: { type: "string" } },
          description: "Only this network; may be repeated, and then all of them must be ready",
        },
      ],
      responses: {
        ...answer(
          "Readiness",
          "Ready, or degraded: one network at least can be asked, and all that were named",
        ),
        "503": {
          description: "No network can be asked, or one of those that were named cannot",
          content: jsonOf("Readiness"),
        },
        ...problems("404"),
      },
    },
    supported: {
      summary: "The kinds of payment that are taken",
      responses: {
        ...answer("Supported", "Every configured network in both versions of the protocol"),
        ...problems("429"),
      },
    },
  };
}

/** The problem responses, by status. */
function problems(...statuses: string[]) {
  return Object.fromEntries(statuses.map((status) => [status, problem(status)]));
}

/** A problem response; its description lists the problems with this status. */
function problem(status: string, headers: object = {}) {
  const kinds = Object.values(problemKinds).filter((kind) => `${kind.status}` === status);
  return {
    description: kinds.flatMap(({ name }) => problemTexts[name].means ?? []).join(", or "),
    headers: { ...alwaysSent, ...problemHeaders[status], ...headers },
    content: { [problemMediaType]: { schema: reference("Problem") } },
  };
}

/** The success response, with a decision or a resource. */
function answer(schema: string, description: string, headers: object = {}) {
  return { "200": { description, headers: { ...alwaysSent, ...headers }, content: jsonOf(schema) } };
}

/** The operations by path; routes of the public protocol are also at the root. */
function pathsOf(operations: Readonly<Record<RouteName, object>>): object {
  return Object.fromEntries(
    (Object.entries(operations) as [RouteName, object][]).flatMap(([name, operation]) => {
      const { method, paths }: Route = routes[name];
      return paths.map((path, index) => {
        const operationId = index === 0 ? name : `${name}AtRoot`;
        return [path, { [method.toLowerCase()]: { operationId, ...operation } }];
      });
    }),
  );
}

const text = { type: "string" };
const seconds = { type: "integer", minimum: 0 };

const alwaysSent = {
  "X-Request-Id": { description: "Names the request in the service's log", schema: text },
};

/** Headers of problems, in addition to those of every response. */
const problemHeaders: Readonly<Record<string, object>> = {
  "401": { "WWW-Authenticate": { description: "Bearer", schema: text } },
  "429": {
    "Retry-After": { description: "In how many seconds to ask again", schema: seconds },
    "RateLimit-Limit": { description: "How many requests may come at once", schema: seconds },
    "RateLimit-Remaining": { description: "How many of them are left", schema: seconds },
    "RateLimit-Reset": { description: "In how many seconds all of them are left again", schema: seconds },
  },
  "503": { "Retry-After": { description: "In how many seconds to ask again", schema: seconds } },
};

const location = {
  description:
    "The path of the settlement, where the payment could be read: what became of it can be asked there",
  schema: text,
};

const settlementState = {
  description: "`pending` where a transaction is on its way: ask again, and have nobody sign again",
  schema: { ...text, enum: ["pending"] },
};

const settlementQuery: Readonly<Record<keyof SettlementQuery, object>> = {
  network: { description: "By its name in either version of the protocol", example: "base", schema: text },
  state: { schema: { ...text, enum: settlementStates } },
  payer: { description: "The payer's address", schema: { ...text, pattern: forms.address.source } },
  from: { description: "Claimed at or after this time, ISO 8601", example: "2026-11-01", schema: text },
  to: { description: "Claimed before this time, ISO 8601", example: "2026-12-01", schema: text },
  limit: {
    description: `Settlements on the page; ${usualPage} by default`,
    schema: { type: "integer", minimum: 1, maximum: largestPage },
  },
  cursor: { description: "`next` of the page before", schema: text },
};
const settlementParameters = Object.entries(settlementQuery).map(([name, rest]) => ({
  name,
  in: "query",
  ...rest,
}));

/** The parameters of a query; those without which it is invalid are required. */
function queryOf({ shape }: { shape: Readonly<Record<string, z.ZodType>> }): object[] {
  return Object.entries(shape).map(([name, schema]) => {
    const { description, example, ...rest } = schemaOf(schema);
    const required = !schema.safeParse(undefined).success;
    return { name, in: "query", ...(required && { required }), description, example, schema: rest };
  });
}

const withKey = { security: [{ apiKey: [] }] };

function idempotencyKey(schema: object, description: string): object {
  return { name: "Idempotency-Key", in: "header", schema, description };
}

function jsonOf(schema: string): object {
  return { "application/json": { schema: reference(schema) } };
}

function reference(name: string): object {
  return { $ref: `#/components/schemas/${name}` };
}

function schemaOf(schema: z.ZodType): Omit<z.core.JSONSchema.BaseSchema, "$schema" | "id"> {
  const { $schema, id, ...rest } = z.toJSONSchema(schema, { io: "input", reused: "inline" });
  return rest;
}
