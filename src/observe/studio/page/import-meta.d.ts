/** What Vite makes of it, as the page is built. */
interface ImportMeta {
  glob<T>(
    patterns: readonly string[],
    options: { query: "?raw"; import: "default"; eager: true },
  ): Record<string, T>;
}
