package tests

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	turnlinev1 "turnline.dev/client/turnline/v1"
)

// vector is one message in the forms of tests/contract/proto/golden.
type vector struct {
	Message protoreflect.FullName
	Value   json.RawMessage
	Binary  string
}

// newer has fields that nobody here knows, which have no place in JSON.
const newer = "request-of-a-newer-minor-version"

// deterministic writes maps sorted and fields in order of number, but those of a oneof behind all
// others; so a message that has more behind its oneof has the bytes of its vector in another order.
var deterministic = proto.MarshalOptions{Deterministic: true}

func vectors(t *testing.T, check func(t *testing.T, name string, vector vector)) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(env(t, "TURNLINE_GOLDEN"), "*.json"))
	if err != nil || len(paths) < 40 {
		t.Fatal(len(paths), err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var read vector
			if err := json.Unmarshal(raw, &read); err != nil {
				t.Fatal(err)
			}
			check(t, name, read)
		})
	}
}

func (v vector) empty(t *testing.T) proto.Message {
	t.Helper()
	kind, err := protoregistry.GlobalTypes.FindMessageByName(v.Message)
	if err != nil {
		t.Fatal(err)
	}
	return kind.New().Interface()
}

func (v vector) bytes(t *testing.T) []byte {
	t.Helper()
	raw, err := hex.DecodeString(v.Binary)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func parsed(t *testing.T, into proto.Message, raw []byte) proto.Message {
	t.Helper()
	if err := proto.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
	return into
}

func written(t *testing.T, message proto.Message) []byte {
	t.Helper()
	raw, err := deterministic.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestTheBytesOfAVectorHaveItsReadableForm(t *testing.T) {
	vectors(t, func(t *testing.T, _ string, vector vector) {
		message := parsed(t, vector.empty(t), vector.bytes(t))
		raw, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}

		var got, want any
		if json.Unmarshal(raw, &got) != nil || json.Unmarshal(vector.Value, &want) != nil {
			t.Fatal("not JSON")
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got %s", raw)
		}
	})
}

func TestTheReadableFormOfAVectorIsWrittenAsBytesThatAreReadTheSame(t *testing.T) {
	vectors(t, func(t *testing.T, name string, vector vector) {
		if name == newer {
			return
		}
		message := vector.empty(t)
		if err := protojson.Unmarshal(vector.Value, message); err != nil {
			t.Fatal(err)
		}

		got := written(t, message)
		want := parsed(t, vector.empty(t), vector.bytes(t))
		if len(got) != len(vector.bytes(t)) || !proto.Equal(parsed(t, vector.empty(t), got), want) {
			t.Fatalf("got %x", got)
		}
		if !oneofInTheMiddle(vector) && !bytes.Equal(got, vector.bytes(t)) {
			t.Fatalf("got %x", got)
		}
	})
}

// oneofInTheMiddle says whether a message has fields behind its oneof.
func oneofInTheMiddle(vector vector) bool {
	return vector.Message == "turnline.v1.Envelope"
}

func TestFieldsThatNobodyHereKnowsAreKept(t *testing.T) {
	vectors(t, func(t *testing.T, _ string, vector vector) {
		raw := protowire.AppendTag(vector.bytes(t), 9999, protowire.BytesType)
		raw = protowire.AppendString(raw, "of tomorrow")

		read := parsed(t, vector.empty(t), raw)
		got := written(t, read)
		if !bytes.HasSuffix(got, raw[len(vector.bytes(t)):]) || len(got) != len(raw) {
			t.Fatalf("got %x", got)
		}
		if !proto.Equal(parsed(t, vector.empty(t), got), read) {
			t.Fatalf("got %x", got)
		}
	})
}

func TestValuesOfEnumsThatNobodyHereKnowsAreKept(t *testing.T) {
	event := &turnlinev1.ChatEvent{Type: 999, TypeName: "hologram"}
	raw := written(t, &turnlinev1.Chunk{Attempt: 1, Event: event})

	read := parsed(t, &turnlinev1.Chunk{}, raw).(*turnlinev1.Chunk)
	if read.GetEvent().GetType() != 999 || read.GetEvent().GetTypeName() != "hologram" {
		t.Fatal(read)
	}
	if got := written(t, read); !bytes.Equal(got, raw) {
		t.Fatalf("got %x", got)
	}
}
