package tests

import (
	"net"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
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

// forgetful is a server that ends a stream without its end, and then knows its turn no more.
type forgetful struct {
	turnlinev1.UnimplementedChatServiceServer
	asked chan *turnlinev1.StreamChatRequest
}

func (f forgetful) StreamChat(
	request *turnlinev1.StreamChatRequest,
	stream grpc.ServerStreamingServer[turnlinev1.StreamChatResponse],
) error {
	f.asked <- request
	if request.GetRequest() == nil {
		return status.Error(codes.NotFound, "no such turn")
	}
	turn := &turnlinev1.SubmitResponse{RequestId: request.GetRequestId()}
	return stream.Send(&turnlinev1.StreamChatResponse{Item: &turnlinev1.StreamChatResponse_Admitted{Admitted: turn}})
}

// failing is a server whose turn failed, in a way that another turn of the same kind may not.
type failing struct {
	turnlinev1.UnimplementedChatServiceServer
	asked chan *turnlinev1.StreamChatRequest
}

func (f failing) StreamChat(
	request *turnlinev1.StreamChatRequest,
	stream grpc.ServerStreamingServer[turnlinev1.StreamChatResponse],
) error {
	f.asked <- request
	failure := &turnlinev1.Failure{Code: "busy", Retry: turnlinev1.RetryHint_RETRY_HINT_NOW}
	end := &turnlinev1.TurnEnd{Outcome: &turnlinev1.TurnEnd_Failure{Failure: failure}}
	return stream.Send(&turnlinev1.StreamChatResponse{Item: &turnlinev1.StreamChatResponse_End{End: end}})
}

// serving starts a server of a test's own and gives a client of it.
func serving(t *testing.T, service turnlinev1.ChatServiceServer) *turnline.Client {
	t.Helper()
	return servingFor(t, service, turnline.Options{})
}

func servingFor(
	t *testing.T, service turnlinev1.ChatServiceServer, options turnline.Options,
) *turnline.Client {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	turnlinev1.RegisterChatServiceServer(server, service)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return client(t, listener.Addr().String(), options)
}

func TestWhatANewerServerSaysIsSkippedOrHandedOn(t *testing.T) {
	all, err := read(serving(t, tomorrow{}).Stream(soon(t), turn(t, "echo", "hi")), nothing)

	if err != nil || !slices.Equal(all.kinds, []string{"end"}) {
		t.Fatal(all, err)
	}
	if all.text != "" || all.first.GetEvent().GetTypeName() != "hologram" {
		t.Fatal(all)
	}
}

func TestATurnThatWasAdmittedIsNotRunAnew(t *testing.T) {
	server := forgetful{asked: make(chan *turnlinev1.StreamChatRequest, 2)}
	all, err := read(serving(t, server).Stream(soon(t), turn(t, "echo", "hi")), nothing)

	if refused(t, err).Code != "not_found" || !slices.Equal(all.kinds, []string{"admitted"}) {
		t.Fatal(all, err)
	}
	if first, second := <-server.asked, <-server.asked; first.GetRequestId() != second.GetRequestId() {
		t.Fatal(first, second)
	}
}

func TestATurnThatFailedIsNotReadAgain(t *testing.T) {
	server := failing{asked: make(chan *turnlinev1.StreamChatRequest, 5)}
	_, err := read(serving(t, server).Stream(soon(t), turn(t, "echo", "hi")), nothing)

	if failed := refused(t, err); failed.Code != "busy" || !failed.Retryable || len(server.asked) != 1 {
		t.Fatal(failed, len(server.asked))
	}
}
