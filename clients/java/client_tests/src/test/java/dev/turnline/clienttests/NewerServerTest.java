package dev.turnline.clienttests;

import static dev.turnline.clienttests.ModesTest.all;
import static dev.turnline.clienttests.ModesTest.chunks;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnknownFieldSet;
import dev.turnline.client.StreamItem;
import dev.turnline.client.StreamItem.Chunk;
import dev.turnline.client.StreamItem.End;
import dev.turnline.client.Turn;
import dev.turnline.client.TurnlineClient;
import dev.turnline.client.TurnlineException;
import dev.turnline.v1.ChatEvent;
import dev.turnline.v1.Failure;
import dev.turnline.v1.RetryHint;
import dev.turnline.v1.StreamChatRequest;
import dev.turnline.v1.StreamChatResponse;
import dev.turnline.v1.TurnEnd;
import io.grpc.Grpc;
import io.grpc.InsecureServerCredentials;
import io.grpc.MethodDescriptor;
import io.grpc.Server;
import io.grpc.ServerServiceDefinition;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.stub.ServerCalls;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Servers that say more than this client knows, or end a stream early. */
class NewerServerTest {
  private static final MethodDescriptor<StreamChatRequest, StreamChatResponse> METHOD =
      MethodDescriptor.<StreamChatRequest, StreamChatResponse>newBuilder()
          .setType(MethodDescriptor.MethodType.SERVER_STREAMING)
          .setFullMethodName("turnline.v1.ChatService/StreamChat")
          .setRequestMarshaller(ProtoUtils.marshaller(StreamChatRequest.getDefaultInstance()))
          .setResponseMarshaller(ProtoUtils.marshaller(StreamChatResponse.getDefaultInstance()))
          .build();

  private final AtomicInteger asked = new AtomicInteger();
  private Server server;

  @AfterEach
  void stop() {
    server.shutdownNow();
  }

  private List<StreamItem> streamed(StreamChatResponse... said) throws IOException {
    ServerServiceDefinition service =
        ServerServiceDefinition.builder("turnline.v1.ChatService")
            .addMethod(
                METHOD,
                ServerCalls.asyncServerStreamingCall(
                    (request, answer) -> {
                      asked.incrementAndGet();
                      List.of(said).forEach(answer::onNext);
                      answer.onCompleted();
                    }))
            .build();
    server =
        Grpc.newServerBuilderForPort(0, InsecureServerCredentials.create())
            .addService(service)
            .build()
            .start();
    String target = "127.0.0.1:" + server.getPort();
    try (TurnlineClient client = TurnlineClient.builder(target).build()) {
      return all(client.stream(Turn.of("s", "x")));
    }
  }

  private static StreamChatResponse event(ChatEvent.Builder event) {
    return StreamChatResponse.newBuilder()
        .setChunk(dev.turnline.v1.Chunk.newBuilder().setAttempt(1).setEvent(event))
        .build();
  }

  private static final StreamChatResponse END =
      StreamChatResponse.newBuilder()
          .setEnd(TurnEnd.newBuilder().setReply(dev.turnline.v1.ChatReply.newBuilder().setResult("x")))
          .build();

  @Test
  void anEventTypeThatIsNewerIsGivenByItsName() throws IOException {
    ChatEvent.Builder named = ChatEvent.newBuilder().setTypeValue(999).setTypeName("hologram");

    List<StreamItem> items =
        streamed(event(named), event(ChatEvent.newBuilder().setTypeValue(999)), END);

    assertEquals(List.of("hologram", "custom"), chunks(items).stream().map(Chunk::type).toList());
    assertEquals("", chunks(items).get(0).text());
  }

  @Test
  void kindsOfItemsThatAreNewerAreSkipped() throws IOException {
    UnknownFieldSet.Field newer =
        UnknownFieldSet.Field.newBuilder().addLengthDelimited(ByteString.copyFromUtf8("new")).build();
    StreamChatResponse unknown =
        StreamChatResponse.newBuilder()
            .setUnknownFields(UnknownFieldSet.newBuilder().addField(900, newer).build())
            .build();

    List<StreamItem> items = streamed(unknown, END);

    assertEquals(1, items.size());
    assertInstanceOf(End.class, items.get(0));
  }

  @Test
  void aStreamThatEndsBeforeItsTurnIsAskedForAgainAndThenUnavailable() {
    String code = Rig.refused(() -> streamed()).code();

    assertEquals("unavailable", code);
    assertEquals(5, asked.get());
  }

  @Test
  void aFailedTurnsStreamIsReadOnceWhateverItsFailureSaysOfRetries() {
    Failure failure =
        Failure.newBuilder().setCode("of_tomorrow").setRetry(RetryHint.RETRY_HINT_AFTER).build();
    TurnEnd end = TurnEnd.newBuilder().setFailure(failure).build();

    TurnlineException error =
        Rig.refused(() -> streamed(StreamChatResponse.newBuilder().setEnd(end).build()));

    assertEquals("of_tomorrow", error.code());
    assertTrue(error.retryable());
    assertEquals(1, asked.get());
  }
}
