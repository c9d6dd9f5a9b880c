package dev.turnline.clienttests;

import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.turnline.client.Retry;
import dev.turnline.client.Turn;
import dev.turnline.client.TurnlineClient;
import dev.turnline.client.TurnlineException;
import dev.turnline.v1.ChatRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.UUID;
import java.util.function.Supplier;
import org.junit.jupiter.api.function.Executable;

/** The servers these tests are told of by environment; what each variable is, the rig says. */
final class Rig {
  static final Duration LONG = Duration.ofSeconds(60);

  private Rig() {}

  static String env(String name) {
    return System.getenv(name);
  }

  static String fresh() {
    return UUID.randomUUID().toString();
  }

  /** A client of the open server. */
  static TurnlineClient open() {
    return TurnlineClient.builder(env("TURNLINE_OPEN")).timeout(LONG).build();
  }

  /** A client of the strict server; without a token if that is null. */
  static TurnlineClient strict(String token, int maxTries) {
    return strictAsking(token == null ? null : () -> token, maxTries);
  }

  /** The same, with a token that is asked for before each try. */
  static TurnlineClient strictAsking(Supplier<String> token, int maxTries) {
    TurnlineClient.Builder builder =
        TurnlineClient.builder(env("TURNLINE_STRICT"))
            .tls(authorities())
            .timeout(LONG)
            .retry(new Retry(maxTries, Duration.ofMillis(200), Duration.ofSeconds(5)));
    return token == null ? builder.build() : builder.token(token).build();
  }

  static byte[] authorities() {
    try {
      return Files.readAllBytes(Path.of(env("TURNLINE_STRICT_CA")));
    } catch (IOException error) {
      throw new AssertionError(error);
    }
  }

  /** A turn of an agent, in a session of its own. */
  static Turn turn(String agent, String prompt) {
    return turn(fresh(), agent, prompt);
  }

  static Turn turn(String session, String agent, String prompt) {
    return Turn.of(session, ChatRequest.newBuilder().setAgent(agent).setPrompt(prompt).build());
  }

  /** A turn that goes on until it is released. */
  static Turn held(String session) {
    return turn(session, "hold", Path.of(env("TURNLINE_FOLDER"), fresh()).toString());
  }

  /** A turn whose every step but the first waits to be released. */
  static Turn steps(String session) {
    return turn(session, "steps", Path.of(env("TURNLINE_FOLDER"), fresh()).toString());
  }

  static void release(Turn turn) {
    create(turn.request().getPrompt());
  }

  static void release(Turn turn, int step) {
    create(turn.request().getPrompt() + "." + step);
  }

  private static void create(String path) {
    try {
      Files.createFile(Path.of(path));
    } catch (IOException error) {
      throw new AssertionError(error);
    }
  }

  /** Waits until a turn is known to the server. */
  static void awaitAdmitted(TurnlineClient client, String requestId) throws InterruptedException {
    long until = System.nanoTime() + LONG.toNanos();
    while (true) {
      try {
        client.reply(requestId, Duration.ZERO);
        return;
      } catch (TurnlineException unknown) {
        if (System.nanoTime() > until) {
          throw unknown;
        }
        Thread.sleep(20);
      }
    }
  }

  static TurnlineException refused(Executable call) {
    return assertThrows(TurnlineException.class, call);
  }
}
