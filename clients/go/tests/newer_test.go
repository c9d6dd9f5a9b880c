package tests

import (
	"net"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"

	turnline "turnline.dev/client"
	turnlinev1 "turnline.dev/client/turnline/v1"
)

// tomorrow is a server newer than this client: its stream has an item of a kind, and an event of a
// type, that the client does not know.
type tomorrow struct {
	turnlinev1.UnimplementedChatServiceServer
}

func (tomorrow) StreamChat(
	request *turnlinev1.StreamChatRequest,
	stream grpc.ServerStreamingServer[turnlinev1.StreamChatResponse],
) error {
	unknown := &turnlinev1.StreamChatResponse{}
	unknown.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1))
	event := &turnlinev1.ChatEvent{Type: 999, TypeName: "hologram", Content: "not text"}
	for _, item := range []*turnlinev1.StreamChatResponse{
		unknown,
		{Item: &turnlinev1.StreamChatResponse_Chunk{Chunk: &turnlinev1.Chunk{Attempt: 1, Event: event}}},
		{Item: &turnlinev1.StreamChatResponse_End{End: &turnlinev1.TurnEnd{
			RequestId: request.GetRequestId(),
			Outcome:   &turnlinev1.TurnEnd_Reply{Reply: &turnlinev1.ChatReply{Result: "done"}},
		}}},
	} {
		if err := stream.Send(item); err != nil {
			return err
		}
	}
	return nil
}

func TestWhatANewerServerSaysIsSkippedOrHandedOn(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	turnlinev1.RegisterChatServiceServer(server, tomorrow{})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)

	all, err := read(client(t, listener.Addr().String(), turnline.Options{}).Stream(soon(t), turn(t, "echo", "hi")), nothing)
	if err != nil || !slices.Equal(all.kinds, []string{"end"}) {
		t.Fatal(all, err)
	}
	if all.text != "" || all.first.GetEvent().GetTypeName() != "hologram" {
		t.Fatal(all)
	}
}
