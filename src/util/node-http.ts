const { Agent, createServer, get, request, STATUS_CODES } = process.getBuiltinModule("node:http");

/**
 * What is used of `node:http`, as `require` gives it. An `import` reads all of its exports at once, and with them loads
 * what `fetch` and `WebSocket` are made of: 35 to 50 ms of CPU in every process.
 *
 * As it is when this is loaded: msw and others that put their own functions in the place of these later are not asked
 * about the harness's own requests.
 */
export const http = { Agent, createServer, get, request, STATUS_CODES };
