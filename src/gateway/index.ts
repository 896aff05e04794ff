export type { AuthSettings, GatewayPorts, GatewaySettings, ModelFacts, ModelRow, RateLimit } from './ports.ts';
export { type RunningGateway, startGateway } from './server.ts';
