package dev.turnline.client;

import io.grpc.CallCredentials;
import io.grpc.CallOptions;
import io.grpc.Context;
import io.grpc.Deadline;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.ClientCalls;
import java.time.Duration;
import java.util.Iterator;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/** The channel to one server, and calls on it that are made again where that is safe. */
final class Connection {
  private final ManagedChannel channel;
  private final CallCredentials credentials;
  private final Retry retry;
  private final CountDownLatch closed = new CountDownLatch(1);

  Connection(ManagedChannel channel, Supplier<String> token, Retry retry) {
    this.channel = channel;
    this.credentials = token == null ? null : new Token(token);
    this.retry = retry;
  }

  void close() {
    closed.countDown();
    channel.shutdownNow();
  }

  /** Makes a call, again if it failed and may be repeated. */
  <Q, A> A call(MethodDescriptor<Q, A> method, Q request, String requestId, Tries tries) {
    while (true) {
      tries.begin(requestId);
      try {
        return ClientCalls.blockingUnaryCall(channel, method, options(tries.deadline), request);
      } catch (StatusRuntimeException error) {
        tries.await(TurnlineException.of(error, requestId));
      }
    }
  }

  /** Begins to read; cancelling {@code context} ends it. */
  <Q, A> Iterator<A> read(
      MethodDescriptor<Q, A> method, Q request, Deadline deadline, Context context) {
    Context before = context.attach();
    try {
      return ClientCalls.blockingServerStreamingCall(channel, method, options(deadline), request);
    } finally {
      context.detach(before);
    }
  }

  Tries tries(Duration timeout) {
    return new Tries(Deadline.after(timeout.toNanos(), TimeUnit.NANOSECONDS));
  }

  private CallOptions options(Deadline deadline) {
    CallOptions options = CallOptions.DEFAULT.withDeadline(deadline);
    return credentials == null ? options : options.withCallCredentials(credentials);
  }

  /** The tries of one call. */
  final class Tries {
    final Deadline deadline;
    private int failed;

    private Tries(Deadline deadline) {
      this.deadline = deadline;
    }

    /** Counts from the beginning: the last try got somewhere. */
    void movedOn() {
      failed = 0;
    }

    /** Throws where the client was closed. */
    void begin(String requestId) {
      if (closed.getCount() == 0) {
        throw gaveUp("the client was closed", requestId, null);
      }
    }

    /** Waits until it is time to try again; throws {@code error} if that is not to be. */
    void await(TurnlineException error) {
      failed++;
      if (error.retryable()) {
        // What a call ends with that is cut off by this.
        begin(error.requestId());
      }
      if (!error.retryable() || failed >= retry.maxTries()) {
        throw error;
      }
      Duration pause = retry.pause(failed, error.pause());
      if (pause.toNanos() >= deadline.timeRemaining(TimeUnit.NANOSECONDS)) {
        throw error;
      }
      pause(pause, error.requestId());
      // Or a channel that was cut would refuse all tries of a call before it connects again.
      channel.resetConnectBackoff();
    }
  }

  /** Waits; throws where the caller is interrupted or the client closed meanwhile. */
  void pause(Duration length, String requestId) {
    boolean over;
    try {
      over = closed.await(length.toNanos(), TimeUnit.NANOSECONDS);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw gaveUp("interrupted between two tries", requestId, interrupted);
    }
    if (over) {
      throw gaveUp("the client was closed", requestId, null);
    }
  }

  private static TurnlineException gaveUp(String text, String requestId, Throwable cause) {
    return TurnlineException.local("cancelled", text, false, requestId, cause);
  }

  /** Goes with each call; asked for before each try. */
  private static final class Token extends CallCredentials {
    private static final Metadata.Key<String> KEY =
        Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);

    private final Supplier<String> token;

    Token(Supplier<String> token) {
      this.token = token;
    }

    @Override
    public void applyRequestMetadata(RequestInfo info, Executor executor, MetadataApplier applier) {
      executor.execute(
          () -> {
            try {
              Metadata headers = new Metadata();
              headers.put(KEY, "Bearer " + token.get());
              applier.apply(headers);
            } catch (RuntimeException error) {
              applier.fail(
                  Status.UNAUTHENTICATED.withDescription("there is no token").withCause(error));
            }
          });
    }
  }
}
