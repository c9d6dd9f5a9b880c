package dev.turnline.clienttests;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.protobuf.CodedOutputStream;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.Internal;
import com.google.protobuf.Message;
import com.google.protobuf.UnknownFieldSet;
import com.google.protobuf.util.JsonFormat;
import dev.turnline.v1.AgentServiceProto;
import dev.turnline.v1.ChatServiceProto;
import dev.turnline.v1.EnvelopeProto;
import dev.turnline.v1.GatewayServiceProto;
import dev.turnline.v1.PushServiceProto;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The golden vectors of every message, in both directions, by the classes the client brings. */
class GoldenTest {
  private static final String NEWER = "request-of-a-newer-minor-version";
  private static final List<FileDescriptor> ROOTS =
      List.of(
          AgentServiceProto.getDescriptor(),
          ChatServiceProto.getDescriptor(),
          EnvelopeProto.getDescriptor(),
          GatewayServiceProto.getDescriptor(),
          PushServiceProto.getDescriptor());

  record Vector(String name, Message empty, String value, byte[] binary) {
    static Vector read(Path path) {
      try {
        JsonObject json = JsonParser.parseString(Files.readString(path)).getAsJsonObject();
        String kind = json.get("message").getAsString().replace("turnline.v1.", "dev.turnline.v1.");
        return new Vector(
            json.get("name").getAsString(),
            Internal.getDefaultInstance(Class.forName(kind).asSubclass(Message.class)),
            json.get("value").toString(),
            HexFormat.of().parseHex(json.get("binary").getAsString()));
      } catch (IOException | ClassNotFoundException error) {
        throw new AssertionError(path.toString(), error);
      }
    }

    Message parsed() throws IOException {
      return empty.getParserForType().parseFrom(binary);
    }

    @Override
    public String toString() {
      return name;
    }
  }

  static List<Vector> vectors() throws IOException {
    try (Stream<Path> files = Files.list(Path.of(Rig.env("TURNLINE_GOLDEN")))) {
      return files.filter(path -> path.toString().endsWith(".json")).map(Vector::read).toList();
    }
  }

  static byte[] written(Message message) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    CodedOutputStream output = CodedOutputStream.newInstance(bytes);
    output.useDeterministicSerialization();
    message.writeTo(output);
    output.flush();
    return bytes.toByteArray();
  }

  @ParameterizedTest
  @MethodSource("vectors")
  void theBytesOfAVectorHaveItsReadableForm(Vector vector) throws IOException {
    String printed = JsonFormat.printer().preservingProtoFieldNames().print(vector.parsed());

    assertEquals(JsonParser.parseString(vector.value), JsonParser.parseString(printed));
  }

  @ParameterizedTest
  @MethodSource("vectors")
  void theReadableFormOfAVectorHasItsBytes(Vector vector) throws IOException {
    Message.Builder builder = vector.empty.newBuilderForType();
    JsonFormat.parser().merge(vector.value, builder);

    // What only the bytes can hold is not in the readable form.
    byte[] expected = vector.name.equals(NEWER) ? written(known(vector.parsed())) : vector.binary;
    assertArrayEquals(expected, written(builder.build()));
  }

  @ParameterizedTest
  @MethodSource("vectors")
  void fieldsItDoesNotKnowAreKept(Vector vector) throws IOException {
    assertArrayEquals(vector.binary, written(vector.parsed()));
    // Field 901, a text, as a later minor version might add it.
    byte[] added = HexFormat.of().parseHex(HexFormat.of().formatHex(vector.binary) + "aa38036e6577");

    assertArrayEquals(added, written(vector.empty.getParserForType().parseFrom(added)));
  }

  @Test
  void everyMessageOfThePackageOccursInAVector() throws IOException {
    Set<String> pinned = new HashSet<>();
    for (Vector vector : vectors()) {
      collect(vector.parsed(), pinned);
    }

    for (FileDescriptor file : ROOTS) {
      for (FileDescriptor one : Stream.concat(Stream.of(file), file.getDependencies().stream()).toList()) {
        if (one.getPackage().equals("turnline.v1")) {
          for (Descriptor message : one.getMessageTypes()) {
            assertTrue(pinned.contains(message.getFullName()), message.getFullName());
          }
        }
      }
    }
  }

  private static void collect(Message message, Set<String> names) {
    names.add(message.getDescriptorForType().getFullName());
    for (Map.Entry<FieldDescriptor, Object> field : message.getAllFields().entrySet()) {
      if (field.getKey().getJavaType() == FieldDescriptor.JavaType.MESSAGE) {
        List<?> values =
            field.getKey().isRepeated() ? (List<?>) field.getValue() : List.of(field.getValue());
        values.forEach(value -> collect((Message) value, names));
      }
    }
  }

  /** The message without fields that are not known, at any depth. */
  private static Message known(Message message) {
    Message.Builder builder =
        message.toBuilder().setUnknownFields(UnknownFieldSet.getDefaultInstance());
    for (FieldDescriptor field : message.getAllFields().keySet()) {
      if (field.getJavaType() == FieldDescriptor.JavaType.MESSAGE && !field.isRepeated()) {
        builder.setField(field, known((Message) message.getField(field)));
      }
    }
    return builder.build();
  }
}
