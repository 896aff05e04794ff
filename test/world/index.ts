export { ManualClock } from './clock.ts';
export {
  type ModelServer,
  type ModelServerOptions,
  type Reply,
  type ScriptedCall,
  type ScriptedError,
  type ScriptedUsage,
  type SeenCall,
  type SeenRequest,
  type SeenResult,
  type SeenTurn,
  startModelServer,
  type WireFormat,
} from './model-server.ts';
