package dev.turnline.client;

import dev.turnline.client.StreamItem.Admitted;
import dev.turnline.v1.CancelRequest;
import dev.turnline.v1.ChatServiceChatRequest;
import dev.turnline.v1.GetReplyRequest;
import dev.turnline.v1.GetReplyResponse;
import dev.turnline.v1.StreamChatRequest;
import dev.turnline.v1.SubmitRequest;
import dev.turnline.v1.TurnState;
import io.grpc.ChannelCredentials;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.TlsChannelCredentials;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.regex.Pattern;

/**
 * A client of one server; safe for several threads at once.
 *
 * <p>Every method throws {@link TurnlineException}, and tries again by itself what may be tried again.
 * A caller that leaves does not end its turn: come back with its request id, or {@link #cancel}.
 * Interrupting a thread ends its call.
 */
public final class TurnlineClient implements AutoCloseable {
  // A server may wait less than it is asked to.
  private static final Duration ASK_AGAIN = Duration.ofMillis(200);

  private final Connection connection;
  private final Duration timeout;

  private TurnlineClient(Connection connection, Duration timeout) {
    this.connection = connection;
    this.timeout = timeout;
  }

  /** Begins to make a client of the server at {@code host:port}. */
  public static Builder builder(String target) {
    return new Builder(target);
  }

  /** The same client, whose calls may take so long with all their tries; closing either closes both. */
  public TurnlineClient withTimeout(Duration timeout) {
    return new TurnlineClient(connection, timeout);
  }

  /** Asks, and waits for the answer. */
  public Reply chat(Turn turn) {
    ChatServiceChatRequest message =
        ChatServiceChatRequest.newBuilder()
            .setSessionId(turn.sessionId())
            .setRequestId(turn.requestId())
            .setRequest(turn.request())
            .build();
    Connection.Tries tries = connection.tries(timeout);
    return Reply.of(connection.call(ChatService.CHAT, message, turn.requestId(), tries).getEnd());
  }

  /** Asks, and gives the answer as it is made; nothing is sent before the first item is asked for. */
  public ChatStream stream(Turn turn) {
    StreamChatRequest message =
        StreamChatRequest.newBuilder()
            .setSessionId(turn.sessionId())
            .setRequestId(turn.requestId())
            .setRequest(turn.request())
            .build();
    return new ChatStream(connection, message, connection.tries(timeout));
  }

  /** Gives the stream of a turn that was admitted before, from behind a place. */
  public ChatStream resume(String requestId, Position after) {
    StreamChatRequest message =
        StreamChatRequest.newBuilder().setRequestId(requestId).setAfter(after.message()).build();
    return new ChatStream(connection, message, connection.tries(timeout));
  }

  /** Asks, and comes back for the answer with {@link #reply} or {@link #resume}. */
  public Admitted submit(Turn turn) {
    SubmitRequest message =
        SubmitRequest.newBuilder()
            .setSessionId(turn.sessionId())
            .setRequestId(turn.requestId())
            .setRequest(turn.request())
            .build();
    Connection.Tries tries = connection.tries(timeout);
    return Admitted.of(connection.call(ChatService.SUBMIT, message, turn.requestId(), tries));
  }

  /**
   * Gives the answer of a turn, or nothing while it has none. Reading destroys nothing.
   *
   * @param wait how long to wait for the end, zero not at all; a server that waits less is asked
   *     again
   */
  public Optional<Reply> reply(String requestId, Duration wait) {
    long until = System.nanoTime() + wait.toNanos();
    Connection.Tries tries = connection.tries(timeout);
    while (true) {
      long left = Math.max(0, until - System.nanoTime());
      GetReplyRequest message =
          GetReplyRequest.newBuilder()
              .setRequestId(requestId)
              .setWait(duration(left))
              .build();
      GetReplyResponse answer = connection.call(ChatService.GET_REPLY, message, requestId, tries);
      if (answer.hasEnd()) {
        return Optional.of(Reply.of(answer.getEnd()));
      }
      long rest =
          Math.min(
              until - System.nanoTime(), tries.deadline.timeRemaining(TimeUnit.NANOSECONDS));
      if (rest <= ASK_AGAIN.toNanos()) {
        return Optional.empty();
      }
      tries.movedOn();
      connection.pause(ASK_AGAIN, requestId);
    }
  }

  /** Stops a turn, queued or running, and says which it was, or that it had ended. */
  public TurnState cancel(String requestId) {
    CancelRequest message = CancelRequest.newBuilder().setRequestId(requestId).build();
    Connection.Tries tries = connection.tries(timeout);
    return connection.call(ChatService.CANCEL, message, requestId, tries).getState();
  }

  private static com.google.protobuf.Duration duration(long nanos) {
    Duration seconds = Duration.ofNanos(nanos);
    return com.google.protobuf.Duration.newBuilder()
        .setSeconds(seconds.getSeconds())
        .setNanos(seconds.getNano())
        .build();
  }

  /** Closes the connection; what runs, or is asked later, ends with {@code cancelled}. */
  @Override
  public void close() {
    connection.close();
  }

  /** Says how a client connects: without more, in plain text and without a token. */
  public static final class Builder {
    private static final long PING_SECONDS = 20;
    // Answers may be larger than the 4 MiB that gRPC takes by itself.
    private static final int MAX_MESSAGE_BYTES = 64 << 20;

    private static final Pattern LOOPBACK =
        Pattern.compile("localhost|\\[?::1]?|127(\\.\\d{1,3}){3}", Pattern.CASE_INSENSITIVE);

    private final String target;
    private ChannelCredentials security;
    private boolean allowPlaintextToken;
    private Supplier<String> token;
    private Duration timeout = Duration.ofMinutes(5);
    private Retry retry = Retry.DEFAULT;

    private Builder(String target) {
      this.target = target;
    }

    /** Connects over TLS, and trusts the authorities that Java does. */
    public Builder tls() {
      security = TlsChannelCredentials.create();
      return this;
    }

    /** Connects over TLS, and trusts the authorities of a PEM text. */
    public Builder tls(byte[] rootCertificates) {
      try {
        security =
            TlsChannelCredentials.newBuilder()
                .trustManager(new ByteArrayInputStream(rootCertificates))
                .build();
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      }
      return this;
    }

    /** Sends what {@code token} gives as a bearer token; it is asked before each try. */
    public Builder token(Supplier<String> token) {
      this.token = token;
      return this;
    }

    /**
     * Sends the token without TLS to a host that is not this one, where everybody on the way can read
     * it; without this, {@link #build} refuses to.
     */
    public Builder allowPlaintextToken() {
      allowPlaintextToken = true;
      return this;
    }

    /** Bounds a call with all its tries; 5 minutes without it. */
    public Builder timeout(Duration timeout) {
      this.timeout = timeout;
      return this;
    }

    /** Says how often and how soon to try again. */
    public Builder retry(Retry retry) {
      this.retry = retry;
      return this;
    }

    /**
     * Makes the client, which connects with its first call.
     *
     * @throws IllegalStateException there is a token and no TLS; see {@link #allowPlaintextToken}
     */
    public TurnlineClient build() {
      if (token != null && security == null && !allowPlaintextToken && !loopback()) {
        String text = "a token without TLS to %s: call tls, or allowPlaintextToken";
        throw new IllegalStateException(text.formatted(target));
      }
      ManagedChannel channel =
          Grpc.newChannelBuilder(
                  target, security == null ? InsecureChannelCredentials.create() : security)
              .keepAliveTime(PING_SECONDS, TimeUnit.SECONDS)
              .keepAliveTimeout(PING_SECONDS, TimeUnit.SECONDS)
              .maxInboundMessageSize(MAX_MESSAGE_BYTES)
              .build();
      return new TurnlineClient(new Connection(channel, token, retry), timeout);
    }

    /** Whether the target is on this machine; a name that is not surely so is not. */
    private boolean loopback() {
      String host = target.replaceFirst("^dns:(///)?", "").replaceFirst(":\\d+$", "");
      return LOOPBACK.matcher(host).matches() || target.startsWith("unix:");
    }
  }
}
