package dev.turnline.client;

import dev.turnline.v1.ChatRequest;
import java.util.Objects;
import java.util.UUID;

/**
 * One user message, by the name it has from the beginning: asked for again, it is the same turn, which
 * runs once.
 *
 * @param sessionId names the session; never empty
 * @param requestId names the turn; empty has one made
 * @param request what to run
 */
public record Turn(String sessionId, String requestId, ChatRequest request) {
  public Turn {
    Objects.requireNonNull(sessionId);
    Objects.requireNonNull(request);
    if (requestId.isEmpty()) {
      requestId = UUID.randomUUID().toString();
    }
  }

  /** Asks the server's first agent with a text. */
  public static Turn of(String sessionId, String prompt) {
    return of(sessionId, ChatRequest.newBuilder().setPrompt(prompt).build());
  }

  /** Asks with more than a text: another agent, files, decisions about a paused run. */
  public static Turn of(String sessionId, ChatRequest request) {
    return new Turn(sessionId, "", request);
  }

  /** The same message under a name of the caller's own. */
  public Turn named(String requestId) {
    return new Turn(sessionId, requestId, request);
  }
}
