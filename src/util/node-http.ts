/**
 * `node:http`, as `require` gives it. An `import` reads all of its exports at once, and with them loads what `fetch` and
 * `WebSocket` are made of: 35 to 50 ms of CPU in every process.
 */
export const http = process.getBuiltinModule("node:http");
