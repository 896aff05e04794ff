export { usageOf } from './cost.ts';
export { type ChosenModel, type ConfiguredProvider, Models, type ModelsOptions } from './models.ts';
export { findOllama } from './ollama.ts';
export { OFFLINE_PROFILE, VENDORS, type Vendor } from './vendors.ts';
