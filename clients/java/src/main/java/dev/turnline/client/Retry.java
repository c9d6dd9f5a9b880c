package dev.turnline.client;

import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;

/**
 * How often and how soon a call is tried again. Only what is safe is: every try of a turn has the same
 * request id, which the server runs once.
 *
 * @param maxTries how many in a row, the first included; 1 never tries again. A stream that moved on
 *     counts from the beginning.
 * @param backoff the pause before the second try, doubled with each further one
 * @param maxBackoff the longest pause of this client's own; a longer one that the server asks for is
 *     kept
 */
public record Retry(int maxTries, Duration backoff, Duration maxBackoff) {
  /** 5 tries, with pauses from 200 ms to 5 s. */
  public static final Retry DEFAULT = new Retry(5, Duration.ofMillis(200), Duration.ofSeconds(5));

  /** Never tries again. */
  public static final Retry NEVER = new Retry(1, Duration.ofMillis(200), Duration.ofSeconds(5));

  /**
   * Gives how long to wait after some tries in a row.
   *
   * @param asked what the server asks for; zero when it asks for nothing
   */
  Duration pause(int failed, Duration asked) {
    long doubled = backoff.toMillis() << Math.min(failed - 1, 20);
    long grown = Math.min(doubled, maxBackoff.toMillis());
    if (asked.isZero()) {
      return shortened(grown);
    }
    // Callers who were refused together must not come back together.
    return asked.plus(shortened(Math.min(grown, asked.toMillis() / 2)));
  }

  /** Takes up to half of a time away, by chance. */
  private static Duration shortened(long millis) {
    return Duration.ofMillis(millis - ThreadLocalRandom.current().nextLong(millis / 2 + 1));
  }
}
