export default {
  testEnvironment: "node",
  transform: {},
  testMatch: ["**/*.jest.mjs"],
  globalSetup: "./jest-setup.mjs",
  globalTeardown: "./jest-teardown.mjs",
};
