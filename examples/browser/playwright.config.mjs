export default {
  testDir: ".",
  globalSetup: "./global-setup.mjs",
  use: { baseURL: "http://localhost:4173" },
  webServer: { command: "vite preview --port 4173", url: "http://localhost:4173" },
};
