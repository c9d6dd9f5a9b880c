package dev.turnline.clienttests;

import com.google.protobuf.Message;
import dev.turnline.client.Retry;
import dev.turnline.client.TurnlineClient;
import io.grpc.Grpc;
import io.grpc.InsecureServerCredentials;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.Server;
import io.grpc.ServerServiceDefinition;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntFunction;

/** A server of a test's own: it says what the test tells it to, and counts how often it is asked. */
final class OwnServer implements AutoCloseable {
  static final Retry THREE_TRIES = new Retry(3, Duration.ofMillis(10), Duration.ofSeconds(5));

  private static final String SERVICE = "turnline.v1.ChatService";

  private final AtomicInteger asked = new AtomicInteger();
  private final IntFunction<List<?>> answer;
  private final Server server;

  /**
   * Begins to serve.
   *
   * @param answer gives what is said to the call of a number, from 1: messages, or the status that
   *     ends it
   */
  OwnServer(IntFunction<List<?>> answer) {
    this.answer = answer;
    ServerServiceDefinition.Builder service = ServerServiceDefinition.builder(SERVICE);
    for (String name : List.of("Chat", "Submit", "GetReply", "Cancel")) {
      service.addMethod(
          method(name, MethodType.UNARY), ServerCalls.asyncUnaryCall((q, to) -> say(to)));
    }
    service.addMethod(
        method("StreamChat", MethodType.SERVER_STREAMING),
        ServerCalls.asyncServerStreamingCall((q, to) -> say(to)));
    try {
      server =
          Grpc.newServerBuilderForPort(0, InsecureServerCredentials.create())
              .addService(service.build())
              .build()
              .start();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  /** How many calls there were. */
  int asked() {
    return asked.get();
  }

  TurnlineClient client(Retry retry) {
    return TurnlineClient.builder("127.0.0.1:" + server.getPort())
        .retry(retry)
        .timeout(Rig.LONG)
        .build();
  }

  @Override
  public void close() {
    server.shutdownNow();
  }

  private void say(StreamObserver<byte[]> to) {
    for (Object said : answer.apply(asked.incrementAndGet())) {
      if (said instanceof StatusRuntimeException status) {
        to.onError(status);
        return;
      }
      to.onNext(((Message) said).toByteArray());
    }
    to.onCompleted();
  }

  private static MethodDescriptor<byte[], byte[]> method(String name, MethodType type) {
    return MethodDescriptor.<byte[], byte[]>newBuilder()
        .setType(type)
        .setFullMethodName(MethodDescriptor.generateFullMethodName(SERVICE, name))
        .setRequestMarshaller(new Bytes())
        .setResponseMarshaller(new Bytes())
        .build();
  }

  private static final class Bytes implements MethodDescriptor.Marshaller<byte[]> {
    @Override
    public InputStream stream(byte[] value) {
      return new ByteArrayInputStream(value);
    }

    @Override
    public byte[] parse(InputStream stream) {
      try {
        return stream.readAllBytes();
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      }
    }
  }
}
