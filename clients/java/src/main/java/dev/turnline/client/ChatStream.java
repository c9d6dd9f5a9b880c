package dev.turnline.client;

import dev.turnline.client.StreamItem.Admitted;
import dev.turnline.client.StreamItem.Chunk;
import dev.turnline.client.StreamItem.End;
import dev.turnline.client.StreamItem.Restart;
import dev.turnline.v1.Gap;
import dev.turnline.v1.StreamChatRequest;
import dev.turnline.v1.StreamChatResponse;
import io.grpc.Context;
import io.grpc.StatusRuntimeException;
import java.util.Iterator;
import java.util.NoSuchElementException;

/**
 * The items of one turn as they come. A connection that is cut is made anew and the stream goes on
 * behind the last item seen. For one reader; closing it leaves the turn running, {@code cancel} stops
 * that.
 *
 * <p>{@link #hasNext} throws {@link TurnlineException} where the turn failed or was refused, the server
 * stays away, the deadline passed, or pieces are no longer kept. Nothing comes after it.
 */
public final class ChatStream implements Iterable<StreamItem>, Iterator<StreamItem>, AutoCloseable {
  // With it a server sends a stream's reader away, who has waited for long, to come back.
  private static final String STILL_RUNNING = "reply_not_ready";

  private final Connection connection;
  private final Connection.Tries tries;
  private final StreamChatRequest.Builder request;
  private Context.CancellableContext reading;
  private Iterator<StreamChatResponse> source;
  private StreamItem next;
  private Position position;
  private boolean admitted;
  private boolean ended;

  ChatStream(Connection connection, StreamChatRequest request, Connection.Tries tries) {
    this.connection = connection;
    this.request = request.toBuilder();
    this.tries = tries;
    this.position =
        request.hasAfter()
            ? new Position(request.getAfter().getAttempt(), request.getAfter().getIndex())
            : Position.BEGINNING;
  }

  /** Names the turn. */
  public String requestId() {
    return request.getRequestId();
  }

  /** The place of the last item given, to resume from, also in another process. */
  public Position position() {
    return position;
  }

  @Override
  public Iterator<StreamItem> iterator() {
    return this;
  }

  @Override
  public boolean hasNext() {
    try {
      while (next == null && !ended) {
        StreamChatResponse message = read();
        if (message != null) {
          next = item(message);
        }
        if (next != null) {
          tries.movedOn();
        }
      }
    } catch (RuntimeException error) {
      close();
      throw error;
    }
    return next != null;
  }

  @Override
  public StreamItem next() {
    if (!hasNext()) {
      throw new NoSuchElementException();
    }
    StreamItem given = next;
    next = null;
    if (given instanceof Chunk chunk) {
      position = chunk.position();
    } else if (given instanceof Restart restart) {
      position = new Position(restart.attempt(), -1);
    } else if (given instanceof End) {
      close();
    }
    return given;
  }

  /** Stops reading. */
  @Override
  public void close() {
    ended = true;
    next = null;
    leave();
  }

  private void leave() {
    if (reading != null) {
      reading.cancel(null);
    }
    reading = null;
    source = null;
  }

  /** Gives the next message; null where the connection has to be made anew. */
  private StreamChatResponse read() {
    TurnlineException error;
    try {
      if (source == null) {
        tries.begin(requestId());
        reading = Context.current().withCancellation();
        source =
            connection.read(ChatService.STREAM_CHAT, request.build(), tries.deadline, reading);
      }
      if (source.hasNext()) {
        return source.next();
      }
      // A proxy on the way may end a stream well.
      error =
          TurnlineException.local(
              "unavailable", "the stream ended before its turn did", true, requestId(), null);
    } catch (StatusRuntimeException refused) {
      error = TurnlineException.of(refused, requestId());
    }
    leave();
    if (error.code().equals(STILL_RUNNING)) {
      tries.movedOn();
    }
    tries.await(error);
    return null;
  }

  /** Gives what a message is for the reader; null if nothing. */
  private StreamItem item(StreamChatResponse message) {
    return switch (message.getItemCase()) {
      case ADMITTED -> onAdmitted(Admitted.of(message.getAdmitted()));
      case CHUNK -> {
        Chunk chunk = Chunk.of(message.getChunk());
        request.setAfter(chunk.position().message());
        yield chunk;
      }
      case RESTART -> {
        Restart restart = new Restart(message.getRestart().getAttempt());
        request.setAfter(new Position(restart.attempt(), -1).message());
        yield restart;
      }
      case GAP -> throw gone(message.getGap());
      case END -> new End(Reply.of(message.getEnd()));
      case ITEM_NOT_SET -> null;
    };
  }

  private Admitted onAdmitted(Admitted first) {
    if (admitted) {
      return null;
    }
    admitted = true;
    // From now on it is only attached to: a server that forgot it must not run it anew.
    request.clearRequest().clearSessionId();
    return first;
  }

  private TurnlineException gone(Gap gap) {
    String text =
        "chunks %d to %d of attempt %d are no longer kept"
            .formatted(gap.getFirst(), gap.getLast(), gap.getAttempt());
    return TurnlineException.local(TurnlineException.STREAM_GAP, text, false, requestId(), null);
  }
}
