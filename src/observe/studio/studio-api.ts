import { z } from "zod";
import {
  paymentAnswerSchema,
  paymentListSchema,
  paymentSummarySchema,
  transactionViewSchema,
} from "./payment-view.ts";

/** What the studio adds to the OpenAPI document of the service it stands beside. */
export function describeStudioApi(): { paths: object; schemas: object } {
  const reference = (name: string) => ({ $ref: `#/components/schemas/${name}` });
  const schemaOf = (schema: z.ZodType) => z.toJSONSchema(schema, { io: "output" });
  const json = (name: string, description: string) => ({
    "200": { description, content: { "application/json": { schema: reference(name) } } },
  });
  const id = {
    ...{ name: "id", in: "path", required: true, schema: { type: "string" } },
    description: "The settlement id, or the hash of a transaction that carries the payment",
  };
  return {
    paths: {
      "/payments": {
        get: {
          operationId: "listPayments",
          summary: "What became of the newest payments",
          parameters: [
            { name: "limit", in: "query", schema: { type: "integer", default: 100, maximum: 10_000 } },
          ],
          responses: json("PaymentList", "Newest first"),
        },
      },
      "/payments/{id}": {
        get: {
          operationId: "getPayment",
          summary: "Everything about one payment, with why it was refused",
          parameters: [id],
          responses: {
            ...json("PaymentAnswer", "The payment"),
            "404": { description: "No request has named it, or it is forgotten by now" },
          },
        },
      },
      "/payments/{id}/transaction": {
        get: {
          operationId: "getPaymentTransaction",
          summary:
            "The transaction that carried a payment: its call without signatures, gas, fee, block and events",
          description: "Where the chains can be asked: `up`, and the admin listener of `serve`",
          parameters: [id],
          responses: {
            ...json("PaymentTransaction", "The newest transaction that carried it"),
            "404": { description: "No readable payment of this id was seen" },
            "409": { description: "No transaction has carried it" },
          },
        },
      },
      "/events": {
        get: {
          operationId: "followPayments",
          summary: "Every change of a payment, as Server-Sent Events",
          description:
            "Events `payment` hold a PaymentSummary as JSON. `reset` says that all that was told before is forgotten. A reader that comes back with `Last-Event-ID` gets what it missed, once.",
          parameters: [{ name: "Last-Event-ID", in: "header", schema: { type: "string" } }],
          responses: {
            "200": {
              description: "A stream that does not end",
              content: { "text/event-stream": { schema: reference("PaymentSummary") } },
            },
            "429": { description: "The address, or the connection, has as many streams as it can have" },
            "503": { description: "As many streams are open as can be" },
          },
        },
      },
    },
    schemas: {
      PaymentSummary: schemaOf(paymentSummarySchema),
      PaymentList: schemaOf(paymentListSchema),
      PaymentAnswer: schemaOf(paymentAnswerSchema),
      PaymentTransaction: schemaOf(transactionViewSchema),
    },
  };
}
