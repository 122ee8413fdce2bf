import { beforeEach, describe, expect, test } from "vitest";
import {
  createEndpointState,
  type EndpointError,
  EndpointFailure,
  type EndpointHealth,
  type EndpointState,
} from "./endpoint-state.ts";

let time: number;
let state: EndpointState;
beforeEach(() => {
  time = 1_000;
  state = createEndpointState({
    now: () => time,
    firstPauseMs: 10,
    longestPauseMs: 100,
  });
});

/** A request that fails at once. */
const fail = (kind: EndpointError = "connection", retryAfterMs?: number) =>
  state.failed(new EndpointFailure(kind, `it was ${kind}`, retryAfterMs), time);
const pass = () => state.passed(time);
const pause = () => state.pausedUntil - time;

test.each<[EndpointError, EndpointHealth]>([
  ["timeout", "failing"],
  ["connection", "failing"],
  ["http_5xx", "failing"],
  ["refused", "failing"],
  ["malformed", "failing"],
  ["rate_limited", "rate_limited"],
  ["wrong_chain", "wrong_chain"],
  ["lagging", "lagging"],
])("%s makes it %s, and one good answer makes it healthy", (kind, health) => {
  expect(state.health).toBe("untried");
  fail(kind);
  expect([state.health, state.detail]).toEqual([health, `it was ${kind}`]);
  time += 5;
  pass();
  expect([state.health, state.detail]).toEqual(["healthy", undefined]);
});

describe("the pause after a failure", () => {
  test("doubles with each one that follows, up to the longest", () => {
    const pauses = Array.from({ length: 6 }, () => {
      fail();
      const length = pause();
      time = state.pausedUntil;
      return length;
    });
    expect(pauses).toEqual([10, 20, 40, 80, 100, 100]);
  });

  test("is one for all requests that fail together", () => {
    for (let request = 0; request < 8; request++) fail();
    expect(pause()).toBe(10);
  });

  test("goes on growing when it is well only between failures", () => {
    fail();
    time += 10;
    pass();
    time += 50;
    fail();
    expect(pause()).toBe(20);
  });

  test("is the first again once it was well for as long as the longest", () => {
    fail();
    time = state.pausedUntil;
    fail();
    time = state.pausedUntil;
    pass();
    time += 100;
    fail();
    expect(pause()).toBe(10);
  });

  test("is what it asks for, but never more than the longest", () => {
    fail("rate_limited", 60);
    expect([pause(), state.retryAt - time]).toEqual([60, 60]);
    fail("rate_limited", 31_536_000_000);
    expect([pause(), state.retryAt - time]).toEqual([100, 100]);
  });

  test("is over with a good answer", () => {
    fail("http_5xx", 60);
    time += 1;
    pass();
    expect([state.pausedUntil, state.retryAt]).toEqual([0, 0]);
  });

  test("is none for one that lags", () => {
    fail("lagging");
    expect(pause()).toBeLessThanOrEqual(0);
  });
});

describe("a request that was under way", () => {
  test("when the trouble began, and is answered, does not end it", () => {
    const sentAt = time;
    time += 5;
    fail();
    state.passed(sentAt);
    expect(state.health).toBe("failing");
  });

  test("when it recovered, and fails, does not bring the trouble back", () => {
    const sentAt = time;
    fail();
    time += 10;
    pass();
    state.failed(new EndpointFailure("timeout", "late"), sentAt);
    expect(state.health).toBe("healthy");
  });
});

test("being slow is told only of one that is otherwise well", () => {
  pass();
  state.setSlow(true);
  expect([state.health, state.detail]).toEqual(["slow", undefined]);
  fail();
  expect([state.health, state.detail]).toEqual(["failing", "it was connection"]);
  time += 1;
  pass();
  expect(state.health).toBe("slow");
  state.setSlow(false);
  expect([state.health, state.detail]).toEqual(["healthy", undefined]);
});
