package dev.turnline.client;

import com.google.protobuf.Struct;
import dev.turnline.v1.TurnEnd;

/**
 * The end of a turn that was answered.
 *
 * @param text the whole answer
 * @param statusCode HTTP status of the outcome
 * @param extra further keys of the reply ({@code status}, {@code run_id}, {@code interruptions} of a
 *     paused run)
 * @param attempt which attempt answered, from 1
 */
public record Reply(
    String requestId, String sessionId, String text, int statusCode, Struct extra, int attempt) {

  /** Reads the end of a turn; throws what a turn that failed is told by. */
  static Reply of(TurnEnd end) {
    if (!end.hasReply()) {
      throw TurnlineException.of(end);
    }
    return new Reply(
        end.getRequestId(),
        end.getSessionId(),
        end.getReply().getResult(),
        end.getStatusCode(),
        end.getReply().getExtra(),
        end.getAttempt());
  }
}
