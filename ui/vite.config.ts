import { defineConfig } from "vite";

// The page is served by `mulligan serve` under a strict content security policy: no inline
// scripts, no inline styles, nothing from elsewhere. So nothing is inlined here either.
export default defineConfig({
  base: "/",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../src/mulligan/server/page",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
    reportCompressedSize: true,
  },
});
