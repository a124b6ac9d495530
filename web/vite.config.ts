// One page, one script, one style sheet, under fixed names: the program embeds them by name and tells versions apart by
// their ETag. Nothing is inlined, so that the page runs under `Content-Security-Policy: default-src 'self'`.
import { defineConfig } from 'vite';

export default defineConfig({
  base: './',
  build: {
    outDir: process.env.RINGSHIFT_WEB_OUT ?? '../build/web/site',
    emptyOutDir: true,
    target: ['es2022', 'chrome111', 'firefox114', 'safari16.4'],
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rollupOptions: {
      output: { entryFileNames: 'app.js', chunkFileNames: '[name].js', assetFileNames: 'app[extname]' },
    },
  },
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none' },
  // `npm run dev` beside a running `ringshift serve`.
  server: { proxy: { '/api': process.env.RINGSHIFT_ADMIN ?? 'http://127.0.0.1:7380' } },
});
