import { durationMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { type Failure, FailureSchema, RetryHint } from "./gen/turnline/v1/failure_pb.js";

/** Code of a stream whose next chunks are no longer kept; `reply` has the whole text. */
export const STREAM_GAP = "stream_gap";

// What a call ends with whose connection is cut: HTTP/2 cancels its streams then.
const BROKEN: readonly Code[] = [Code.Unavailable, Code.Aborted, Code.Canceled];

/** What an error is made of; see `TurnlineError`. */
interface Parts {
  code: string;
  message: string;
  requestId: string;
  field?: string;
  statusCode?: number;
  retryable?: boolean;
  retryAfterMs?: number;
  cause?: unknown;
}

/** Why there is no answer. */
export class TurnlineError extends Error {
  override readonly name = "TurnlineError";
  /**
   * Stable: the server's (`session_queue_full`), `STREAM_GAP`, or of a call that brought no word
   * of the server its gRPC status in lower case (`unavailable`, `deadline_exceeded`).
   */
  readonly code: string;
  /** Dotted name of the request's field at fault; empty when none is. */
  readonly field: string;
  /** HTTP status of the failure; 0 when the server named none. */
  readonly statusCode: number;
  /** Whether the same request may work later. */
  readonly retryable: boolean;
  /** How long to wait before that; 0 when no time is known. */
  readonly retryAfterMs: number;
  /** Names the turn, to come back for it. */
  readonly requestId: string;

  constructor(parts: Parts) {
    super(parts.message, "cause" in parts ? { cause: parts.cause } : {});
    this.code = parts.code;
    this.field = parts.field ?? "";
    this.statusCode = parts.statusCode ?? 0;
    this.retryable = parts.retryable ?? false;
    this.retryAfterMs = parts.retryAfterMs ?? 0;
    this.requestId = parts.requestId;
  }
}

/** Makes the error of a failure; `statusCode` is what a turn ended with, 0 has the failure's own. */
export function ofFailure(
  failure: Failure,
  statusCode: number,
  requestId: string,
  cause?: unknown,
): TurnlineError {
  return new TurnlineError({
    code: failure.code,
    message: failure.message,
    field: failure.field,
    statusCode: statusCode || failure.statusCode,
    retryable: failure.retry === RetryHint.NOW || failure.retry === RetryHint.AFTER,
    retryAfterMs: failure.retryAfter ? durationMs(failure.retryAfter) : 0,
    requestId,
    cause,
  });
}

/** Gives what a call threw as one of our errors; `left` is whether its caller gave it up. */
export function ofThrown(thrown: unknown, requestId: string, left: boolean): TurnlineError {
  if (thrown instanceof TurnlineError) return thrown;
  const error = ConnectError.from(thrown);
  const [failure] = error.findDetails(FailureSchema);
  if (failure) return ofFailure(failure, 0, requestId, error);
  const code = left && error.code !== Code.DeadlineExceeded ? Code.Canceled : error.code;
  const retryable = !left && BROKEN.includes(error.code);
  // A status that a server sent has no cause; what a cut connection ends with is Node's own affair.
  const cut = retryable && (error.code === Code.Canceled || error.cause !== undefined);
  return new TurnlineError({
    code: cut ? "unavailable" : named(code),
    message: error.rawMessage,
    retryable,
    requestId,
    cause: error,
  });
}

function named(code: Code): string {
  if (code === Code.Canceled) return "cancelled";
  return Code[code].replace(/(?<=[a-z])(?=[A-Z])/g, "_").toLowerCase();
}
