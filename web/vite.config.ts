import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

// The gateway serves dist/ under its own origin with `default-src 'self'`: nothing inline, every address relative.
export default defineConfig({
  root: import.meta.dirname,
  base: './',
  resolve: {
    alias: [{ find: /^#([a-z]+)$/, replacement: `${fileURLToPath(new URL('../src', import.meta.url))}/$1/index.ts` }],
  },
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    target: 'es2023',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
    rolldownOptions: {
      treeshake: { moduleSideEffects: (id) => !/[\\/]src[\\/](base|domain|protocol|client)[\\/]/.test(id) },
    },
  },
});
