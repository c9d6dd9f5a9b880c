export { TurnlineClient } from "./client.js";
export type { CallOptions, Options, ReplyOptions, Turn } from "./client.js";
export { STREAM_GAP, TurnlineError } from "./errors.js";
export type { Admitted, Position, StreamEvent } from "./stream.js";
export { TurnState } from "./gen/turnline/v1/chat_service_pb.js";
export type { TurnEnd } from "./gen/turnline/v1/chat_pb.js";
