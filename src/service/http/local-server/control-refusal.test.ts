import fastify from "fastify";
import { expect, onTestFinished, test } from "vitest";
import { controlRefusal } from "./control-refusal.ts";

test.each([
  ["", "The body is empty: send a JSON object, such as {}"],
  ["{", "The body is not JSON, or has a member __proto__ or constructor.prototype, which is refused"],
])("a control route that gets the body %j says what is wrong with it", async (payload, message) => {
  const app = fastify();
  onTestFinished(() => app.close());
  app.setErrorHandler((error, _request, reply) => reply.code(400).send(controlRefusal(error)));
  app.post("/harness/pay", () => ({}));
  const headers = { "content-type": "application/json" };
  const answer = await app.inject({ method: "POST", url: "/harness/pay", headers, payload });
  expect(answer.json()).toEqual({ status: 400, message });
});
