package dev.turnline.client;

import dev.turnline.v1.ChatEvent;
import dev.turnline.v1.EventType;
import dev.turnline.v1.SubmitResponse;
import java.util.Locale;

/** What a stream gives. */
public sealed interface StreamItem {

  /**
   * The turn is on its way; first, once.
   *
   * @param known whether its request id was used before with the same request
   */
  record Admitted(String requestId, String sessionId, boolean known) implements StreamItem {
    static Admitted of(SubmitResponse message) {
      return new Admitted(message.getRequestId(), message.getSessionId(), message.getKnown());
    }
  }

  /** A piece of the answer, and its place. */
  record Chunk(Position position, ChatEvent event) implements StreamItem {
    private static final String PREFIX = "EVENT_TYPE_";

    static Chunk of(dev.turnline.v1.Chunk message) {
      Position position = new Position(message.getAttempt(), message.getIndex());
      return new Chunk(position, message.getEvent());
    }

    /** What it adds to the text of the answer; empty unless it is a {@code text_delta}. */
    public String text() {
      return event.getType() == EventType.EVENT_TYPE_TEXT_DELTA ? event.getContent() : "";
    }

    /**
     * What happened: {@code text_delta}, {@code tool_call_start}, ...; the server's own word for a type
     * that is newer than this client.
     */
    public String type() {
      return switch (event.getType()) {
        case UNRECOGNIZED, EVENT_TYPE_UNSPECIFIED ->
            event.getTypeName().isEmpty() ? "custom" : event.getTypeName();
        default -> event.getType().name().substring(PREFIX.length()).toLowerCase(Locale.ROOT);
      };
    }
  }

  /** Every chunk seen so far is void: another attempt begins. */
  record Restart(int attempt) implements StreamItem {}

  /** The answer; last, once. */
  record End(Reply reply) implements StreamItem {}
}
