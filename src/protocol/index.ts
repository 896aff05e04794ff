export {
  CLIENT_IDS,
  CLIENT_MODES,
  ConnectParams,
  EVENTS,
  type HelloOk,
  OPERATOR_SCOPES,
  type Scope,
} from './connect.ts';
export { type EventFrame, type RequestFrame, type ResponseFrame, readRequest, type WireError } from './frames.ts';
export { agreedProtocol, LIMITS, PROTOCOL_VERSIONS } from './limits.ts';
export { METHODS, type MethodName, type MethodParams } from './methods.ts';
export { ParamsChecker } from './validate.ts';
