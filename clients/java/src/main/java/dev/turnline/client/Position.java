package dev.turnline.client;

/**
 * A place in a stream: everything up to and including it was seen.
 *
 * @param attempt of the last chunk seen; 0 when none was
 * @param index of the last chunk seen; -1 when none of this attempt was
 */
public record Position(int attempt, int index) {
  /** Before the first chunk. */
  public static final Position BEGINNING = new Position(0, -1);

  dev.turnline.v1.Position message() {
    return dev.turnline.v1.Position.newBuilder().setAttempt(attempt).setIndex(index).build();
  }
}
