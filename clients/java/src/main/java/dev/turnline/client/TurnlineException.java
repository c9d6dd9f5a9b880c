package dev.turnline.client;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.ErrorInfo;
import dev.turnline.v1.Failure;
import dev.turnline.v1.RetryHint;
import dev.turnline.v1.TurnEnd;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import java.time.Duration;
import java.util.Locale;
import java.util.Optional;

/** A call that was refused, a turn that failed, or a server that cannot be reached. */
public final class TurnlineException extends RuntimeException {
  /** Code of a stream whose next chunks are no longer kept; {@code reply} has the whole text. */
  public static final String STREAM_GAP = "stream_gap";

  private final Failure failure;
  private final String requestId;

  private TurnlineException(Failure failure, String requestId, Throwable cause) {
    super(failure.getMessage(), cause);
    this.failure = failure;
    this.requestId = requestId;
  }

  /**
   * What went wrong, stable across releases: the server's code ({@code queue_full}); of a call that
   * brought no word of the server its gRPC status in lower case ({@code unavailable}).
   */
  public String code() {
    return failure.getCode();
  }

  /** Dotted name of the request's field at fault; empty when none is. */
  public String field() {
    return failure.getField();
  }

  /** Whether the same request, with the same request id, may work later. */
  public boolean retryable() {
    return switch (failure.getRetry()) {
      case RETRY_HINT_NOW, RETRY_HINT_AFTER -> true;
      default -> false;
    };
  }

  /** How long the server asks to wait before that. */
  public Optional<Duration> retryAfter() {
    return failure.hasRetryAfter() ? Optional.of(pause()) : Optional.empty();
  }

  /** HTTP status of the failure; 0 when the server named none. */
  public int statusCode() {
    return failure.getStatusCode();
  }

  /** Names the turn, to come back for it; empty when none was asked for. */
  public String requestId() {
    return requestId;
  }

  @Override
  public String toString() {
    return "TurnlineException: " + code() + ": " + getMessage();
  }

  Duration pause() {
    return Duration.ofSeconds(
        failure.getRetryAfter().getSeconds(), failure.getRetryAfter().getNanos());
  }

  static TurnlineException of(TurnEnd end) {
    Failure failure = end.getFailure();
    int status = end.getStatusCode() == 0 ? failure.getStatusCode() : end.getStatusCode();
    Failure ended = failure.toBuilder().setStatusCode(status == 0 ? 500 : status).build();
    return new TurnlineException(ended, end.getRequestId(), null);
  }

  static TurnlineException of(StatusRuntimeException error, String requestId) {
    com.google.rpc.Status status = StatusProto.fromThrowable(error);
    Failure failure = null;
    String named = requestId;
    for (Any detail : status.getDetailsList()) {
      if (detail.is(Failure.class)) {
        failure = read(detail, Failure.class);
      } else if (detail.is(ErrorInfo.class) && named.isEmpty()) {
        named = read(detail, ErrorInfo.class).getMetadataOrDefault("request_id", "");
      }
    }
    return new TurnlineException(failure == null ? unsaid(error) : failure, named, error);
  }

  static TurnlineException local(
      String code, String message, boolean retryable, String requestId, Throwable cause) {
    RetryHint hint = retryable ? RetryHint.RETRY_HINT_NOW : RetryHint.RETRY_HINT_NEVER;
    Failure failure = Failure.newBuilder().setCode(code).setMessage(message).setRetry(hint).build();
    return new TurnlineException(failure, requestId, cause);
  }

  /** What a status says by itself: of a library or something on the way, not of Turnline. */
  private static Failure unsaid(StatusRuntimeException error) {
    Status.Code code = error.getStatus().getCode();
    // Nobody there, or a reader who did not read for long.
    boolean retryable = code == Status.Code.UNAVAILABLE || code == Status.Code.ABORTED;
    String text = error.getStatus().getDescription();
    return Failure.newBuilder()
        .setCode(code.name().toLowerCase(Locale.ROOT))
        .setMessage(text == null ? "the call failed" : text)
        .setRetry(retryable ? RetryHint.RETRY_HINT_NOW : RetryHint.RETRY_HINT_NEVER)
        .build();
  }

  private static <M extends com.google.protobuf.Message> M read(Any detail, Class<M> kind) {
    try {
      return detail.unpack(kind);
    } catch (InvalidProtocolBufferException error) {
      throw new IllegalStateException("the server's status cannot be read", error);
    }
  }
}
