export default { testDir: ".", globalSetup: "./global-setup.mjs", fullyParallel: true };
