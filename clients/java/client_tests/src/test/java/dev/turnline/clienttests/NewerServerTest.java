package dev.turnline.clienttests;

import static dev.turnline.clienttests.ModesTest.all;
import static dev.turnline.clienttests.ModesTest.chunks;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnknownFieldSet;
import dev.turnline.client.Retry;
import dev.turnline.client.StreamItem;
import dev.turnline.client.StreamItem.Chunk;
import dev.turnline.client.StreamItem.End;
import dev.turnline.client.Turn;
import dev.turnline.client.TurnlineClient;
import dev.turnline.client.TurnlineException;
import dev.turnline.v1.ChatEvent;
import dev.turnline.v1.Failure;
import dev.turnline.v1.RetryHint;
import dev.turnline.v1.StreamChatResponse;
import dev.turnline.v1.TurnEnd;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Servers that say more than this client knows, or end a stream early. */
class NewerServerTest {
  private int asked;

  private List<StreamItem> streamed(StreamChatResponse... said) {
    try (OwnServer server = new OwnServer(number -> List.of(said));
        TurnlineClient client = server.client(Retry.DEFAULT)) {
      try {
        return all(client.stream(Turn.of("s", "x")));
      } finally {
        asked = server.asked();
      }
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
  void anEventTypeThatIsNewerIsGivenByItsName() {
    ChatEvent.Builder named = ChatEvent.newBuilder().setTypeValue(999).setTypeName("hologram");

    List<StreamItem> items =
        streamed(event(named), event(ChatEvent.newBuilder().setTypeValue(999)), END);

    assertEquals(List.of("hologram", "custom"), chunks(items).stream().map(Chunk::type).toList());
    assertEquals("", chunks(items).get(0).text());
  }

  @Test
  void kindsOfItemsThatAreNewerAreSkipped() {
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
    assertEquals(5, asked);
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
    assertEquals(1, asked);
  }
}
