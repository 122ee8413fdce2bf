export default () => globalThis.harnessPool.close();
